"""The content of pages: sections of text, tables, charts and examples, and what a task adds."""

from __future__ import annotations

import csv
import inspect
from abc import ABC
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import plotly.graph_objects as go
from markupsafe import Markup

from wxb.core.params import Params
from wxb.metrics import Metric
from wxb.reporting.charts.figures import Chip, Curve, chips
from wxb.reporting.charts.formatting import SHARE, Cell, Table, rounded
from wxb.reporting.charts.scores import baselines, goodness, test_sets

DEEPEST = 62  # percent of colour in the cell of a perfect score, so that text on it stays legible


class Charts(NamedTuple):
    """Charts by caption, side by side if they fit, and their legend."""

    charts: Mapping[str, go.Figure]
    legend: Mapping[str, Chip] = {}


class Example(NamedTuple):
    """One record: lines of a label and a text, which may have marks; `media` precedes them."""

    title: str
    lines: Sequence[tuple[str, str]]
    media: Markup = Markup("")


class Fold(NamedTuple):
    """Blocks that are shown on a click."""

    summary: str
    blocks: Sequence[Block]


Block = str | Table | Charts | Example | Fold  # a string is a paragraph


class Section(NamedTuple):
    """A section of a page."""

    id: str
    title: str
    blocks: Sequence[Block]


class Study(NamedTuple):
    """All data of a study's page. Outputs that a stage has not written have no key."""

    params: Params
    comparison: Mapping[str, Any]  # as the stage compare writes it
    predictions: Mapping[str, Sequence[Any]]  # rows of predictions.jsonl by experiment
    curves: Mapping[str, Mapping[str, Curve]]  # by experiment, then metric
    pretraining: Mapping[str, Mapping[str, Curve]]  # by backbone, then metric
    pretrained: Mapping[str, Mapping[str, float]]  # by backbone: metrics on held-out texts
    costs: Mapping[str, Mapping[str, Any]]  # by stage, such as train@<experiment>

    @property
    def systems(self) -> Mapping[str, Any]:
        """The systems of the comparison on `test`, by experiment."""
        systems: Mapping[str, Any] = self.comparison["systems"]
        return systems

    @property
    def chips(self) -> dict[str, Chip]:
        """The character and the colour of each experiment; baselines are grey."""
        return chips(self.systems, baselines(self.comparison))

    def rates(self, key: str) -> dict[str, float]:
        """Units predicted per second by experiment; `key` is the unit's count in the comparison.

        Sums over all test sets and seeds. Experiments without units or time are left out.
        """
        rates = {}
        for name in self.systems:
            sets = test_sets(self.comparison).values()
            count = sum(results["systems"][name][key] for results in sets)
            if count and (seconds := self.costs.get(f"evaluate@{name}", {}).get("predicting")):
                rates[name] = count * len(self.comparison["seeds"]) / seconds
        return rates


class Page(ABC):
    """What a task adds to the pages of its studies."""

    RULE: ClassVar[str]  # what counts as right, in a sentence
    VALIDATION_NOTE: ClassVar[str]  # what the validation curves show, in sentences

    def example(self, row: Any) -> str:
        """The input of a test record, as readers see it."""
        return str(row.input)

    def answer(self, row: Any) -> str:
        """The gold of a test record, as readers see it."""
        return row.gold if isinstance(row.gold, str) else " / ".join(row.gold)

    def sections(self, study: Study) -> list[Section]:
        """The sections that only this task has, in their order; none by default."""
        return []

    def published(self, study: str) -> list[Section]:
        """The published scores that a study reproduces, from <study>.csv beside the task's page."""
        path = Path(inspect.getfile(type(self))).with_name(f"{study}.csv")
        if not path.exists():
            return []
        with path.open(encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file)
        return [
            Section(
                "published",
                "Published scores",
                [
                    "From the series github.com/AUSTIN2526/learning-wx-b-in-30-days, measured on"
                    " other records, with other models and another scorer: do not compare them"
                    " with the scores above.",
                    Table("Published scores", header, rows),
                ],
            )
        ]


def by_category(
    caption: str,
    systems: Mapping[str, Any],
    detail: str,
    score: str,
    *,
    count: str = "support",
    metric: Metric = SHARE,
) -> Table:
    """A table with a row for each category of a detail, such as `by_type`, most frequent first.

    Each category has its number of records in `count`, and a score in `score`.
    """
    details = [system[detail] for system in systems.values()]
    counts = {name: row[count] for name, row in details[0].items() if row[count]}
    return Table(
        caption,
        ["", "count", *systems],
        [
            [
                category,
                f"{counts[category]:,}",
                *(shaded(rows[category][score], metric) for rows in details),
            ]
            for category in sorted(counts, key=lambda category: -counts[category])
        ],
    )


def shaded(score: float, metric: Metric = SHARE, scores: Sequence[float] = ()) -> Cell:
    """The cell of a score: better ones have a deeper colour.

    Squaring separates good scores. Metrics without a largest value need `scores`, those of the
    whole table.
    """
    depth = round(DEEPEST * goodness(score, metric, scores) ** 2)
    return Cell(rounded(score, metric), score, shade=depth)


def marked(pieces: Iterable[tuple[str, str, str]]) -> Markup:
    """Text from pieces of a text, a colour and a label; pieces without a colour have no mark."""
    mark = Markup('<mark style="--c: {}">{}{}</mark>')
    small = Markup("<small>{}</small>")
    return Markup("").join(
        mark.format(colour, text, small.format(label) if label else "") if colour else text
        for text, colour, label in pieces
    )


def swatches(colours: Mapping[str, str]) -> dict[str, Chip]:
    """The legend of colours by name."""
    return {name.replace("_", " "): Chip("■", colour) for name, colour in colours.items()}
