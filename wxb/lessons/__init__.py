"""One module per lesson: a small study of one stage, and what its page shows.

The stage imports `wxb.lessons.<lesson>` by the name in params.yaml and calls `run(params, name)`,
which gives a `Lesson`. Of params a lesson reads its own block, `seed`, `threads`, `portable` and
`resamples`: the stage depends on these, and on the block's `path`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import NamedTuple

import plotly.graph_objects as go

Cell = str | int | float


class Table(NamedTuple):
    """Rows that begin with a name; floats are shown with three digits after the point.

    `shades` colour the cells after the name, each by a number in [0, 1].
    """

    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    shades: Sequence[Sequence[float]] = ()


class Part(NamedTuple):
    """A section of the page: paragraphs, then figures by caption, then tables by caption.

    `legend` names the series of its figures, in the order of their colours.
    """

    title: str
    text: Sequence[str]
    figures: Mapping[str, go.Figure] = {}
    legend: Sequence[str] = ()
    tables: Mapping[str, Table] = {}


class Lesson(NamedTuple):
    """What a lesson found: flat numbers for comparing commits, and its page."""

    metrics: Mapping[str, float]
    answer: str  # the title's question, answered in a sentence
    facts: Sequence[str]  # what it rests on, a few words each
    parts: Sequence[Part]


def module(lesson: str) -> ModuleType:
    """The module of a lesson that params.yaml names (the schema knows which there are)."""
    return import_module(f"wxb.lessons.{lesson}")
