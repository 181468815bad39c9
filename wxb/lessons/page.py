"""The page of a lesson: its answer, what led to it, and how it was made."""

from __future__ import annotations

from wxb.core.params import Params
from wxb.core.params.section import flat
from wxb.lessons import Lesson
from wxb.reporting.charts import figures
from wxb.reporting.charts.rendering import render


def assemble(params: Params, name: str, lesson: Lesson) -> str:
    """The page of the lesson `name` of params.yaml as HTML."""
    block = params.named("lessons", name)
    places = {
        (number, caption): f"figure-{number}-{place}"
        for number, part in enumerate(lesson.parts)
        for place, caption in enumerate(part.figures)
    }
    return render(
        "wxb.reporting",
        "lesson.html",
        {id_: lesson.parts[number].figures[caption] for (number, caption), id_ in places.items()},
        name=name,
        title=block.title,
        lesson=lesson,
        places=places,
        legends=[figures.chips(part.legend) for part in lesson.parts],
        settings={"seed": params.seed, **flat(block.model_dump(mode="json"))},
    )
