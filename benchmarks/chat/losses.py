"""Compares the losses of chat models on training and test records with their exact match.

The series validates on its training records, with the loss over all tokens (day 28); docs/errata.md
has the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import torch
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from wxb.core import paths
from wxb.core.params import load
from wxb.corpora import clean
from wxb.corpora.records import Record
from wxb.metrics.intervals import Groups, intervals
from wxb.project import trained
from wxb.project.reproduction import benchmarks
from wxb.tasks.chat import metrics
from wxb.tasks.chat.predictor import Replier
from wxb.tasks.chat.record import Labelling
from wxb.tasks.chat.record.conversation import from_text, message
from wxb.tasks.chat.sft import template
from wxb.tasks.methods import batches_by_length, collator

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)


@app.command()
def main(
    experiments: Annotated[
        list[str] | None, typer.Argument(help="trained experiments of task chat")
    ] = None,
    threads: Annotated[int, typer.Option(min=1, help="threads of torch")] = 1,
) -> None:
    """Print losses and exact match of trained models on each split."""
    torch.set_num_threads(threads)
    table = Table("model", "split", "records", "loss, all", "loss, answers", "exact match")
    table.box = box.MARKDOWN
    params = load()
    for name in experiments or ["chat-full", "chat-all-tokens"]:
        block = params.block("experiments", name)
        predictor = trained.load(name)
        for split in ("train", "valid", "test"):
            records = clean.read_labelled(
                paths.clean(block.corpus) / f"{split}.parquet", Labelling()
            )
            answers = predictor.further_metrics(records, [])["loss"]
            table.add_row(
                name,
                split,
                f"{len(records):,}",
                f"{_mean_loss(predictor, records):.3f}",
                f"{answers:.3f}",
                _exact_match(predictor, records),
            )
    Console(width=130, highlight=False).print(table)


def _mean_loss(predictor: Replier, records: Sequence[Record]) -> float:
    """The mean loss of all tokens, as published."""
    conversations = [[*from_text(r.input), message("assistant", r.gold["text"])] for r in records]
    style = predictor.settings["template"]
    encoded = template.tokens(predictor.tokenizer, conversations, style)
    items = [{"input_ids": tokens.ids, "labels": tokens.ids} for tokens in encoded]
    collate, total, count = collator(predictor.tokenizer), 0.0, 0
    lengths = [len(item["input_ids"]) for item in items]
    for indices in batches_by_length(lengths, predictor.prediction.batch_size):
        with torch.inference_mode():
            output = predictor.model(**collate([items[index] for index in indices]))
        total += float(output["loss"]) * len(output["logits"])
        count += len(output["logits"])
    return total / count


def _exact_match(predictor: Replier, records: Sequence[Record]) -> str:
    """Exact match with its interval, with kinds of questions as groups."""
    replies = predictor.predict([record.input for record in records])
    rows = [
        metrics.Scorer().row(record, reply, None)
        for record, reply in zip(records, replies, strict=True)
    ]
    scorer = metrics.Scorer()
    groups = Groups.from_records(scorer.statistics(rows), [row.group for row in rows])
    exact = intervals(groups, scorer.scores, scorer.METRICS)["exact"]
    return f"{exact.value:.3f} ({exact.low:.3f} to {exact.high:.3f})"


if __name__ == "__main__":
    benchmarks.run(app)
