"""The page that leads to those of all studies and lessons."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, PackageLoader

from wxb.errors import WxbError
from wxb.files import publish, read_json
from wxb.params import Params
from wxb.reporting.pairs import verdicts

INDEX = Path("reports/index.html")


def write_index(params: Params) -> Path:
    """Write reports/index.html from whatever reports exist, and give its path.

    Raises WxbError when there is none yet.
    """
    studies = [
        {"name": name, "title": study.title, "verdicts": verdicts(read_json(comparison))}
        for name, study in params.studies.items()
        if (comparison := Path("reports/studies", f"{name}.json")).exists()
        and Path("reports", f"{name}.html").exists()
    ]
    lessons = {
        name: lesson.title
        for name, lesson in params.lessons.items()
        if Path("reports", f"{name}.html").exists()
    }
    if not studies and not lessons:
        raise WxbError("reports/: found no report of a study or lesson; run `dvc repro` first")
    page = Environment(loader=PackageLoader("wxb.reporting"), autoescape=True).get_template(
        "index.html"
    )
    with publish(INDEX) as (draft,):
        draft.write_text(page.render(studies=studies, lessons=lessons), encoding="utf-8")
    return INDEX
