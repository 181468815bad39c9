"""What the defects of the published series do to a score, measured one by one.

Each defect is put back, alone, into what the project has: the same test records, and the same
trained model where the defect is one of scoring or decoding. Where it is one of training, both
forms are trained from the same backbone on the same records, with the same seeds. docs/errata.md
tells what each defect is; the published forms stand here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

import torch
import typer
from errata_scoring import Pair, f1_of, fitting, generator_pairs, separator_pair, tagger_pairs
from errata_training import training_pairs
from rich.console import Console
from rich.table import Table
from transformers import logging

from wxb import tasks
from wxb.core import paths
from wxb.core.params import load
from wxb.corpora import clean
from wxb.corpora.records import Record
from wxb.metrics.bootstrap import by_group, paired
from wxb.tasks.ner.metrics import Scorer
from wxb.tasks.ner.record import Labelling

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
console = Console(width=130)  # a table is cut nowhere, whatever the terminal


@app.command()
def main(
    experiments: Annotated[
        list[str] | None, typer.Argument(help="trained experiments of one corpus")
    ] = None,
    records: Annotated[int | None, typer.Option(min=1, help="the first test records only")] = None,
    train_records: Annotated[
        int, typer.Option(min=8, help="windows of text to train both forms on")
    ] = 2000,
    seeds: Annotated[int, typer.Option(min=1, help="of each form, from that of params.yaml")] = 2,
    threads: Annotated[int, typer.Option(min=1)] = 1,
) -> None:
    """Put the defects of the published series back, one by one, and score both ways.

    By default with ner-encoder, ner-decoder and ner-generative.
    """
    torch.set_num_threads(threads)
    logging.set_verbosity_error()  # weights of pretraining that a tagger has no use for
    params = load()
    chosen = experiments or ["ner-encoder", "ner-decoder", "ner-generative"]
    corpora = {params.named("experiments", name).corpus for name in chosen}
    if len(corpora) > 1:
        raise typer.BadParameter(f"{', '.join(chosen)} have {len(corpora)} corpora; expected one")
    test = clean.labelled(paths.clean(corpora.pop()) / "test.parquet", Labelling())[:records]
    pairs: list[Pair] = []
    first: dict[str, str] = {}  # of each method
    for name in chosen:
        experiment = params.experiments[name]
        first.setdefault(experiment.method, name)
        predictor = (
            tasks.get(experiment.task).method(experiment.method).Predictor.load(paths.model(name))
        )
        measure, held = tagger_pairs, test
        if experiment.method == "generation":
            measure, held = generator_pairs, fitting(predictor, test)
        pairs += grouped(measure(name, predictor, held), held)
    marked = [record for record in test if record.gold]
    pairs += grouped([separator_pair(marked)], marked)
    pairs += grouped(training_pairs(params, test, first, train_records, seeds), test)
    console.print(table(pairs, resamples=params.resamples, seed=params.seed))
    for number, pair in enumerate(pairs, start=1):
        if pair.note:
            console.print(f"{number}  {pair.note}", highlight=False)
    spans = sum(len(record.gold or ()) for record in test)
    console.print(
        f"{len(test)} test records, {spans} gold spans; strict span F1; 95% intervals of"
        f" {params.resamples} paired resamples of groups of records, seed {params.seed}",
        highlight=False,
    )


def grouped(pairs: Iterable[Pair], records: Sequence[Record]) -> Iterator[Pair]:
    """Pairs whose counts are those of groups of records, which are resampled whole."""
    groups = [record.group for record in records]
    for pair in pairs:
        yield pair._replace(
            right=by_group(pair.right, groups), published=by_group(pair.published, groups)
        )


def table(pairs: Sequence[Pair], *, resamples: int, seed: int) -> Table:
    """One row a defect: F1 both ways, and what the published form adds to it."""
    made = Table("", "defect", "on", "right", "published", "difference (95% interval)")
    for number, pair in enumerate(pairs, start=1):
        difference = paired(
            pair.published,
            pair.right,
            lambda s: Scorer().scores(s)["f1"],
            resamples=resamples,
            seed=seed,
        )
        made.add_row(
            str(number),
            pair.defect,
            pair.experiment,
            f"{f1_of(pair.right):.3f}",
            f"{f1_of(pair.published):.3f}",
            f"{difference.value:+.3f} ({difference.low:+.3f} to {difference.high:+.3f})",
        )
    return made


if __name__ == "__main__":
    app()
