"""Run a lesson, a small study of one stage, and write its metrics and page."""

from importlib import import_module

from wxb import lessons
from wxb.core import paths
from wxb.core.files import publish, write_json
from wxb.core.params import Params
from wxb.runtime.command import run


def main(params: Params, name: str) -> None:
    """Run the lesson `name`, and write its metrics and page."""
    block = params.block("lessons", name)
    lesson = import_module(f"wxb.lessons.{block.lesson}").run(params, name)
    outputs = paths.metrics(paths.LESSONS, name), paths.page(name)
    with publish(*outputs) as (metrics, page):
        write_json(metrics, lesson.metrics)
        page.write_text(lessons.assemble(params, name, lesson), encoding="utf-8")


if __name__ == "__main__":
    run("lesson", main, __doc__)
