"""What a loss on training records tells of a chat model, and what loss and answers on others tell.

The series validates on the records that it trains on, with the loss over all tokens (day 28):
docs/errata.md has what comes of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
import torch
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from wxb.core import paths
from wxb.core.params import load
from wxb.corpora import clean
from wxb.corpora.records import Record
from wxb.metrics.bootstrap import by_group, intervals
from wxb.project import trained
from wxb.tasks.chat import metrics
from wxb.tasks.chat.predictor import Replier
from wxb.tasks.chat.record import Labelling
from wxb.tasks.chat.record.conversation import message, of_text
from wxb.tasks.chat.sft import template
from wxb.tasks.methods import collator, in_batches

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)


@app.command()
def main(
    experiments: Annotated[list[str] | None, typer.Argument(help="trained, of chat")] = None,
    threads: Annotated[int, typer.Option(min=1, help="of torch")] = 1,
) -> None:
    """Print the losses and the exact match of trained models on each split."""
    torch.set_num_threads(threads)
    table = Table("model", "split", "records", "loss, all", "loss, answers", "exact match")
    table.box = box.MARKDOWN
    params = load()
    for name in experiments or ["chat-full", "chat-all-tokens"]:
        block = params.named("experiments", name)
        predictor = trained.load(name)
        for split in ("train", "valid", "test"):
            records = clean.labelled(paths.clean(block.corpus) / f"{split}.parquet", Labelling())
            answers = predictor.further_metrics(records, [])["loss"]
            table.add_row(
                name,
                split,
                f"{len(records):,}",
                f"{_loss(predictor, records):.3f}",
                f"{answers:.3f}",
                _exact(predictor, records),
            )
    Console(width=130, highlight=False).print(table)


def _loss(predictor: Replier, records: Sequence[Record]) -> float:
    """The mean loss of all tokens, as published."""
    whole = [[*of_text(r.input), message("assistant", r.gold["text"])] for r in records]
    items = [
        {"input_ids": each.ids, "labels": each.ids}
        for each in template.tokens(predictor.tokenizer, whole, predictor.settings["template"])
    ]
    collate, total, count = collator(predictor.tokenizer), 0.0, 0
    for chosen in in_batches(
        [len(item["input_ids"]) for item in items], predictor.prediction.batch_size
    ):
        with torch.inference_mode():
            output = predictor.model(**collate([items[at] for at in chosen]))
        total += float(output["loss"]) * len(output["logits"])
        count += len(output["logits"])
    return total / count


def _exact(predictor: Replier, records: Sequence[Record]) -> str:
    """Exact match and its interval, questions of a kind resampled together."""
    replies = predictor.predict([record.input for record in records])
    judged = [
        metrics.Scorer().judge(record, reply, None)
        for record, reply in zip(records, replies, strict=True)
    ]
    counts = by_group(
        np.asarray(metrics.Scorer().statistics(judged)), [row.group for row in judged]
    )
    found = intervals(counts, metrics.Scorer().scores, resamples=1000, seed=1)[
        metrics.Scorer().HEADLINE
    ]
    return f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})"


if __name__ == "__main__":
    app()
