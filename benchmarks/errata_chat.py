"""What it does to a chat model's loss to be measured on the records that it was trained on."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from wxb import paths, tasks
from wxb.corpora import clean
from wxb.params import load

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)


@app.command()
def main(
    study: Annotated[str, typer.Argument(help="a study of chat that was run")] = "chat",
) -> None:
    """Loss and perplexity of answers by each trained model, on each split."""
    params = load()
    table = Table("experiment", "split", "records", "loss", "perplexity")
    for name in params.studies[study].experiments:
        block = params.experiments[name]
        method = tasks.method(block.task, block.method)
        predictor = method.Predictor.load(paths.model(name), block.prediction)
        for split in clean.splits(paths.clean(block.corpus)):
            path = paths.clean(block.corpus) / f"{split}.parquet"
            records = clean.labelled(path, tasks.record(block.task))
            found = predictor.further_metrics(records, [])
            figures = (f"{found[key]:.3f}" for key in ("loss", "perplexity"))
            table.add_row(name, split, f"{found['scored']:,}", *figures)
    Console().print(table)


if __name__ == "__main__":
    app()
