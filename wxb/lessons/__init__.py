"""Lessons: small studies of one stage, one module each.

The stage `lesson` imports `wxb.lessons.<lesson>` by the name in params.yaml and calls its
`run(params, name)`, which returns a `Lesson`. A lesson reads its own block of params, `seed`,
`threads` and `portable`: the stage depends on these, and on the block's `path`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import NamedTuple

import plotly.graph_objects as go

from wxb.core.params import Params
from wxb.core.params.section import flatten
from wxb.reporting.charts import figures
from wxb.reporting.charts.rendering import render

Cell = str | int | float


class Table(NamedTuple):
    """A table of a page. Each row begins with a name; floats are shown with three decimals.

    `shades` colour the cells after the name by numbers in [0, 1].
    """

    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    shades: Sequence[Sequence[float]] = ()


class Part(NamedTuple):
    """A section of a page: paragraphs, figures by caption and tables by caption.

    `legend` names the series of the figures, in the order of their colours.
    """

    title: str
    text: Sequence[str]
    figures: Mapping[str, go.Figure] = {}
    legend: Sequence[str] = ()
    tables: Mapping[str, Table] = {}


class Lesson(NamedTuple):
    """The results of a lesson: flat metrics, and the content of its page."""

    metrics: Mapping[str, float]
    answer: str  # one sentence that answers the question of the title
    facts: Sequence[str]  # data and sizes, a few words each
    parts: Sequence[Part]


def module(lesson: str) -> ModuleType:
    """Import the module of a lesson of params.yaml, whose schema checks the name."""
    return import_module(f"wxb.lessons.{lesson}")


def assemble(params: Params, name: str, lesson: Lesson) -> str:
    """The page of the lesson `name` of params.yaml as HTML."""
    block = params.block("lessons", name)
    figure_ids = {
        (index, caption): f"figure-{index}-{position}"
        for index, part in enumerate(lesson.parts)
        for position, caption in enumerate(part.figures)
    }
    return render(
        "wxb.reporting",
        "lesson.html",
        {id_: lesson.parts[index].figures[caption] for (index, caption), id_ in figure_ids.items()},
        name=name,
        title=block.title,
        lesson=lesson,
        figure_ids=figure_ids,
        legends=[figures.chips(part.legend) for part in lesson.parts],
        settings={"seed": params.seed, **flatten(block.model_dump(mode="json"))},
    )
