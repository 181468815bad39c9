"""Lessons: small studies of one stage, one module each.

The stage `lesson` imports `wxb.lessons.<lesson>` by the name in params.yaml and calls its
`run(params, name)`, which returns a `Lesson`. A lesson reads its own block of params, `seed`,
`threads` and `portable`: the stage depends on these, and on the block's `path`.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from wxb.core.params import Params
from wxb.core.params.section import flatten
from wxb.reporting.formatting import Table, setting
from wxb.reporting.parts import Section, render, score_cell


class Lesson(NamedTuple):
    """The results of a lesson: flat metrics, and the content of its page."""

    metrics: Mapping[str, float]
    answer: str  # one sentence that answers the question of the title
    facts: Sequence[str]  # data and sizes, a few words each
    sections: Sequence[Section]


def assemble(params: Params, name: str, lesson: Lesson) -> str:
    """The HTML page of the lesson `name`, with its settings and the command that makes it."""
    block = params.block("lessons", name)
    settings = {"seed": params.seed, **flatten(block.model_dump(mode="json"))}
    rows = [[key, setting(value)] for key, value in settings.items()]
    making = Section(
        "making",
        "How it was made",
        [f"Run: dvc repro lesson@{name}.", Table("Settings", ["setting", "value"], rows)],
    )
    return render(
        block.title,
        lesson.answer,
        [*lesson.sections, making],
        notes=[", ".join([*lesson.facts, f"seed {params.seed}"])],
        footer=f"Lesson {name}.",
    )


def shares_table(caption: str, header: Sequence[str], rows: Mapping[str, Sequence[float]]) -> Table:
    """A table of numbers in [0, 1] by the name of their row; larger ones have a deeper colour."""
    cells = [[name, *map(score_cell, shares)] for name, shares in rows.items()]
    return Table(caption, header, cells)
