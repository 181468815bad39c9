"""Measure how many names of persons in real news the demo's models mask.

It needs the trained study and the test file of CoNLL-2003, which params/conll2003.yaml downloads.
The demo and CoNLL-2003 have other types, so a name counts as masked if spans of any type cover it.
"""

from __future__ import annotations

import wxb  # silences the libraries that are imported below  # noqa: F401

# isort: split

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from wxb.core.params import load
from wxb.metrics import Metric
from wxb.metrics.intervals import Groups, Sums, intervals
from wxb.project import benchmarks, trained
from wxb.tasks.ner.params import Conll
from wxb.tasks.ner.reading.conll import raw_records

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
PERSON = "PER"
MASKED = Metric("masked", "names masked")


@app.command()
def main(
    file: Annotated[Path, typer.Argument(help="the test file of CoNLL-2003: test.txt")],
    output: Annotated[Path | None, typer.Option(help="JSON file for the table")] = None,
) -> None:
    """Mask the articles of CoNLL-2003 with each tagger of params.yaml; print the shares masked."""
    articles: list[Mapping[str, Any]] = [
        raw.content for raw in raw_records(file, Conll(unit="document"))
    ]
    texts = [article["input"] for article in articles]
    rows = []
    for name, experiment in load().experiments.items():
        if experiment.task != "ner" or experiment.is_baseline:
            continue
        predictions = trained.load(name).predict(texts, caption=name)
        masked, names = np.array(
            [
                masked_names(article, [(scored.span.start, scored.span.end) for scored in spans])
                for article, spans in zip(articles, predictions, strict=True)
            ]
        ).T
        groups = Groups.from_records([{"masked": masked, "names": names}])
        rows.append(
            {
                "experiment": name,
                "names": int(names.sum()),
                "masked": intervals(groups, shares, [MASKED])[MASKED.key],
            }
        )
    benchmarks.report(rows, output, {"masked": ".3f"})


def masked_names(article: Mapping[str, Any], spans: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """The numbers of names that spans cover completely, except blanks, and of all names."""
    text = article["input"]
    is_masked = np.array([character.isspace() for character in text])
    for start, end in spans:
        is_masked[start:end] = True
    names = [span for span in article["spans"] if span["type"] == PERSON]
    return sum(is_masked[span["start"] : span["end"]].all() for span in names), len(names)


def shares(sums: Sums) -> dict[str, NDArray[np.float64]]:
    """The share of names that are masked."""
    return {MASKED.key: sums["masked"] / sums["names"]}


if __name__ == "__main__":
    benchmarks.run(app)
