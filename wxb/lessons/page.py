"""The HTML page of a lesson."""

from __future__ import annotations

from wxb.core.params import Params
from wxb.core.params.section import flatten
from wxb.lessons import Lesson
from wxb.reporting.charts import figures
from wxb.reporting.charts.rendering import render


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
