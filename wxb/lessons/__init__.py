"""Lessons: small studies of one stage, one module each.

The stage `lesson` imports `wxb.lessons.<lesson>` by the name in params.yaml and calls its
`run(params, name)`, which returns a `Lesson`. A lesson reads its own block of params, `seed`,
`threads` and `portable`: the stage depends on these, and on the block's `path`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import NamedTuple

import plotly.graph_objects as go

from wxb.core.params import Params
from wxb.core.params.section import flatten
from wxb.reporting.charts import figures, formatting
from wxb.reporting.charts.parts import Block, Charts, Section, render, shaded

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
    settings = {"seed": params.seed, **flatten(block.model_dump(mode="json"))}
    rows = [[k, v if isinstance(v, str) else json.dumps(v)] for k, v in settings.items()]
    making: list[Block] = [
        f"Run: dvc repro lesson@{name}.",
        formatting.Table("Settings", ["setting", "value"], rows),
    ]
    return render(
        block.title,
        lesson.answer,
        [
            *(
                Section(f"part-{index}", part.title, [*_blocks(part)])
                for index, part in enumerate(lesson.parts)
            ),
            Section("making", "How it was made", making),
        ],
        notes=[", ".join([*lesson.facts, f"seed {params.seed}"])],
        footer=f"Lesson {name}.",
    )


def _blocks(part: Part) -> Iterator[Block]:
    """The paragraphs, figures and tables of a part."""
    yield from part.text
    if part.figures:
        yield Charts(part.figures, figures.chips(part.legend))
    for caption, table in part.tables.items():
        if caption:
            yield caption
        yield formatting.Table(caption or part.title, table.header, [*_rows(table)])


def _rows(table: Table) -> Iterator[list[str]]:
    for index, (name, *cells) in enumerate(table.rows):
        texts = [_text(cell) for cell in cells]
        if table.shades:
            depths = [shaded(shade).shade for shade in table.shades[index]]
            texts = [
                formatting.Cell(text, shade=depth)
                for text, depth in zip(texts, depths, strict=True)
            ]
        yield [str(name), *texts]


def _text(cell: Cell) -> str:
    if isinstance(cell, float):
        return formatting.rounded(cell)
    return f"{cell:,}" if isinstance(cell, int) else cell
