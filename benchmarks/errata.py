"""Measure the effect of each defect of the published series on a score.

Each defect is restored, alone, in the project's code. Defects of scoring and decoding are measured
on the same test records with the same trained model. For defects of training, both forms are
trained from the same backbone on the same records, with the same seeds. docs/errata.md describes
the defects; the published forms are in these scripts.
"""

from __future__ import annotations

import wxb  # silences the libraries that are imported below  # noqa: F401

# isort: split

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from errata_scoring import (
    Pair,
    f1_of,
    generator_pairs,
    separator_pair,
    single_window_records,
    tagger_pairs,
)
from errata_training import training_pairs
from transformers import logging

from wxb import tasks
from wxb.core import paths
from wxb.core.params import load
from wxb.corpora import clean
from wxb.corpora.records import Record
from wxb.metrics.intervals import Groups, paired_difference
from wxb.project import benchmarks
from wxb.tasks.ner.metrics import Scorer
from wxb.tasks.ner.record import LABELLING

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)


@app.command()
def main(
    experiments: Annotated[
        list[str] | None, typer.Argument(help="trained experiments of one corpus")
    ] = None,
    records: Annotated[
        int | None, typer.Option(min=1, help="number of test records; default: all")
    ] = None,
    train_records: Annotated[
        int, typer.Option(min=8, help="number of text windows for training")
    ] = 2000,
    seeds: Annotated[
        int, typer.Option(min=1, help="number of seeds, from that of params.yaml")
    ] = 2,
    threads: Annotated[int, typer.Option(min=1)] = 1,
    output: Annotated[Path | None, typer.Option(help="JSON file for the table")] = None,
) -> None:
    """Restore the defects of the published series, one by one, and score both forms.

    The default experiments are ner-encoder, ner-decoder and ner-generative.
    """
    torch.set_num_threads(threads)
    logging.set_verbosity_error()  # else transformers warns of unused weights of pretraining
    params = load()
    names = experiments or ["ner-encoder", "ner-decoder", "ner-generative"]
    corpora = {params.block("experiments", name).corpus for name in names}
    if len(corpora) > 1:
        raise typer.BadParameter(f"{', '.join(names)} have {len(corpora)} corpora; expected one")
    path = paths.CLEAN / corpora.pop() / "test.parquet"
    test = [*clean.read_labelled(path, LABELLING)][:records]
    pairs: list[tuple[Pair, list[str]]] = []
    first: dict[str, str] = {}  # the first experiment of each method
    for name in names:
        experiment = params.experiments[name]
        first.setdefault(experiment.method, name)
        predictor = (
            tasks.get(experiment.task).method(experiment.method).PREDICTOR.load(paths.MODELS / name)
        )
        measure, members = tagger_pairs, test
        if experiment.method == "generation":
            measure, members = generator_pairs, single_window_records(predictor, test)
        pairs += with_groups(measure(name, predictor, members), members)
    with_spans = [record for record in test if record.gold]
    pairs += with_groups([separator_pair(with_spans)], with_spans)
    pairs += with_groups(training_pairs(params, test, first, train_records, seeds), test)
    benchmarks.report(table_rows(pairs), output, {"difference": "+.3f"})
    for row, (pair, _) in enumerate(pairs, start=1):
        if pair.note:
            print(f"{row}  {pair.note}")
    spans = sum(len(record.gold or ()) for record in test)
    print(
        f"{len(test)} test records, {spans} gold spans; strict span F1; 95% intervals,"
        " jackknife over groups of records"
    )


def with_groups(
    pairs: Iterable[Pair], records: Sequence[Record]
) -> Iterator[tuple[Pair, list[str]]]:
    """Each pair with the groups of its records."""
    groups = [record.group for record in records]
    for pair in pairs:
        yield pair, groups


def table_rows(pairs: Sequence[tuple[Pair, list[str]]]) -> list[dict[str, Any]]:
    """F1 of both forms of each defect, and their difference with its 95% interval."""
    rows = []
    for row, (pair, groups) in enumerate(pairs, start=1):
        published, correct = (
            Groups.from_records([rows], groups) for rows in (pair.published, pair.correct)
        )
        metric = Scorer().headline(correct.total())
        difference = paired_difference(published, correct, Scorer().scores, metric)
        rows.append(
            {
                "": row,
                "defect": pair.defect,
                "on": pair.experiment,
                "correct": f1_of(pair.correct),
                "published": f1_of(pair.published),
                "difference": difference[:3],
            }
        )
    return rows


if __name__ == "__main__":
    benchmarks.run(app)
