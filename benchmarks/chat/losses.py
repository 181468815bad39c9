"""Compares the losses of chat models on training and test records with their exact match.

The series validates on its training records, with the loss over all tokens (day 28); docs/errata.md
has the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import torch
import typer

from wxb.core import paths
from wxb.core.params import load
from wxb.corpora import clean
from wxb.corpora.records import Record
from wxb.corpora.text.templates import message
from wxb.metrics.intervals import Groups, Interval, intervals
from wxb.project import benchmarks, trained
from wxb.tasks.chat import metrics
from wxb.tasks.chat.models.predictor import Replier
from wxb.tasks.chat.record import LABELLING
from wxb.tasks.chat.record.conversation import deserialize
from wxb.tasks.methods import batches_by_length

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)


@app.command()
def main(
    experiments: Annotated[
        list[str] | None, typer.Argument(help="trained experiments of task chat")
    ] = None,
    threads: Annotated[int, typer.Option(min=1, help="threads of torch")] = 1,
    output: Annotated[Path | None, typer.Option(help="JSON file for the table")] = None,
) -> None:
    """Print losses and exact match of trained models on each split."""
    torch.set_num_threads(threads)
    params, rows = load(), []
    for name in experiments or ["chat-full", "chat-all-tokens"]:
        corpus = paths.CLEAN / params.block("experiments", name).corpus
        predictor = trained.load(name)
        for split in (*clean.TRAINING_SPLITS, "test"):
            records = [*clean.read_labelled(clean.split_file(corpus, split), LABELLING)]
            rows.append(
                {
                    "experiment": name,
                    "split": split,
                    "questions": len(records),
                    "loss of all tokens": _mean_loss(predictor, records),
                    "loss of answers": predictor.model_metrics(records, [])["loss"],
                    "exact match (95% interval)": _exact_match(predictor, records),
                }
            )
    benchmarks.report(rows, output)


def _mean_loss(predictor: Replier, records: Sequence[Record]) -> float:
    """The mean loss of all tokens, as published."""
    conversations = [[*deserialize(r.input), message("assistant", r.gold["text"])] for r in records]
    encoded = map(predictor.template.tokens, conversations)
    items = [{"input_ids": tokens.ids, "labels": tokens.ids} for tokens in encoded]
    total, count = 0.0, 0
    lengths = [len(item["input_ids"]) for item in items]
    for indices in batches_by_length(lengths, predictor.prediction.batch_size):
        with torch.inference_mode():
            output = predictor.model(**predictor.batch([items[index] for index in indices]))
        total += float(output["loss"]) * len(output["logits"])
        count += len(output["logits"])
    return total / count


def _exact_match(predictor: Replier, records: Sequence[Record]) -> Interval:
    """Exact match with its interval, with kinds of questions as groups."""
    replies = predictor.predict([record.input for record in records])
    scorer = metrics.Scorer()
    rows = scorer.rows(records, replies)
    groups = Groups.from_records([scorer.statistics(rows)], [row.group for row in rows])
    return intervals(groups, scorer.scores, scorer.METRICS)["exact"]


if __name__ == "__main__":
    benchmarks.run(app)
