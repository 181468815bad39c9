"""Run one lesson, a small study of one stage, and write its metrics and its page."""

from stages import run
from wxb import lessons, paths
from wxb.files import publish, write_json
from wxb.params import Params
from wxb.reporting.lesson import assemble


def main(params: Params, name: str) -> None:
    """Run the lesson `name` of params.yaml."""
    block = params.named("lessons", name)
    lesson = lessons.module(block.lesson).run(params, name)
    outputs = paths.metrics(paths.LESSONS, name), paths.page(name)
    with publish(*outputs) as (metrics, page):
        write_json(metrics, lesson.metrics)
        page.write_text(assemble(params, name, lesson), encoding="utf-8")


if __name__ == "__main__":
    run("lesson", main, __doc__)
