"""The content of pages: sections of text, tables, charts and examples, and what a task adds.

Pages are self-contained HTML files, which load nothing from the network.
"""

from __future__ import annotations

import base64
import gzip
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import plotly.graph_objects as go
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from wxb.core.params import Params
from wxb.metrics import Metric
from wxb.metrics.scorer import Scorer
from wxb.reporting.figures import Chip, Curve, chips, json_object
from wxb.reporting.formatting import SHARE, Cell, Table, rounded, words
from wxb.reporting.pairs import baseline_names, ranked

DEEPEST = 62  # percent of colour in the cell of a perfect score, so that text on it stays legible
BEST = "best of its row"  # the note of a cell; CSS makes it bold
Curves = Mapping[str, Mapping[str, Curve]]


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
    scorer: Scorer
    comparison: Mapping[str, Any]  # as the stage compare writes it
    predictions: Mapping[str, Sequence[Any]]  # rows of predictions.jsonl by experiment
    curves: Curves  # by experiment, then metric
    pretraining: Curves  # by backbone, then metric
    costs: Mapping[str, Mapping[str, Any]]  # by stage, such as train@<experiment>
    alignments: Mapping[str, Mapping[str, int]]  # of training gold, by experiment, then status

    @property
    def systems(self) -> Mapping[str, Any]:
        """The systems of the comparison on `test` by experiment, the best first."""
        return {name: self.comparison["systems"][name] for name in ranked(self.comparison)}

    @property
    def chips(self) -> dict[str, Chip]:
        """The character and the colour of each experiment, in study order; baselines are grey."""
        return chips(self.predictions, baseline_names(self.comparison))


class Page:
    """What a task adds to the pages of its studies; by default nothing."""

    RULE: ClassVar[str] = ""  # what counts as right, in a sentence
    # What the validation curves show, in sentences.
    VALIDATION_NOTE: ClassVar[str] = "The curves show scores on the validation records."

    def sections(self, study: Study) -> list[Section]:
        """The sections that only this task has, in their order; none by default."""
        return []


def by_category(
    caption: str,
    systems: Mapping[str, Any],
    detail: str,
    score: str,
    *,
    count: str = "support",
    metric: Metric = SHARE,
) -> list[Block]:
    """A table with a row for each category of a detail, such as `by_type`, most frequent first.

    `count` and `score` are keys of a category, which all systems have. A sentence before it counts
    the rows in which each system scores highest. Skips categories with a `count` of 0, and
    returns no blocks without others.
    """
    first = next(iter(systems.values()))[detail]
    counts = {name: row[count] for name, row in first.items() if row[count]}
    rows, wins = [], Counter[str]()
    for category in sorted(counts, key=lambda category: -counts[category]):
        scores = {name: system[detail][category][score] for name, system in systems.items()}
        best = max(scores.values())
        wins.update(name for name, value in scores.items() if value == best > 0)
        cells = (score_cell(v, metric, BEST if v == best > 0 else "") for v in scores.values())
        rows.append([category, f"{counts[category]:,}", *cells])
    if not rows:
        return []
    names = ", ".join(f"{name} {number}" for name, number in wins.most_common()) or "none"
    return [
        f"Bold: best of its row. Rows in which each is best, alone or with others: {names}.",
        Table(caption, ["", "count", *systems], rows),
    ]


def confusion_table(corner: str, counts: Mapping[str, Mapping[str, int]]) -> Table:
    """The counts of each gold class by predicted class, in one colour by share of the class."""
    rows = []
    for gold, row in counts.items():
        total = max(1, sum(row.values()))
        cells = [Cell(f"{n:,}", n, shade=round(DEEPEST * n / total)) for n in row.values()]
        rows.append([gold, *cells])
    return Table("Confusions", [corner, *counts], rows)


def error_table(caption: str, systems: Mapping[str, Any]) -> Table:
    """The counts in `errors` of each system; all have the same kinds of errors."""
    rows = [[name, *(f"{n:,}" for n in s["errors"].values())] for name, s in systems.items()]
    return Table(caption, ["experiment", *map(words, next(iter(systems.values()))["errors"])], rows)


def score_cell(score: float, metric: Metric = SHARE, note: str = "") -> Cell:
    """The cell of a score: larger ones have a deeper colour, also if lower is better."""
    share = score / (metric.high or 1)  # squared below, which separates good scores
    return Cell(rounded(score, metric), score, shade=round(DEEPEST * share**2), note=note)


def marked(pieces: Iterable[tuple[str, str, str]]) -> Markup:
    """The text of pieces (text, colour, label); those with a colour are marked and labelled."""
    mark = Markup('<mark style="--c: {}">{}{}</mark>')
    small = Markup("<small>{}</small>")
    return Markup("").join(
        mark.format(colour, text, small.format(label) if label else "") if colour else text
        for text, colour, label in pieces
    )


def render(
    title: str,
    answer: str,
    sections: Sequence[Section],
    *,
    notes: Sequence[str] = (),
    legend: Mapping[str, Chip] | None = None,
    footer: str = "",
) -> str:
    """A page as HTML: its title, its answer with notes, and its sections, also empty ones.

    Names in `legend` get a coloured dot in tables, summaries and examples. Data is escaped.
    """
    page = template("page.html").render(
        json_object=json_object,
        chips=legend or {},
        title=title,
        answer=answer,
        notes=notes,
        sections=sections,
        footer=footer,
        # 2.0 MB instead of 4.8
        plotly=base64.b64encode(gzip.compress(get_plotlyjs().encode(), mtime=0)).decode(),
    )
    return page.lstrip()  # no blank lines of the macros before the doctype


def template(name: str) -> Template:
    """A template of the folder templates/, with escaped text."""
    return Environment(
        loader=PackageLoader("wxb.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    ).get_template(name)
