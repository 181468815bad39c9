"""The page that leads to those of all studies and lessons."""

from __future__ import annotations

from pathlib import Path

from wxb.errors import WxbError
from wxb.files import publish, read_json
from wxb.params import Params
from wxb.reporting.lead import claim
from wxb.reporting.pairs import verdicts
from wxb.reporting.rendering import render

INDEX = Path("reports/index.html")
PARITY = Path("reports/metrics/parity")


def write_index(params: Params) -> Path:
    """Write reports/index.html from whatever reports exist, and give its path.

    Raises WxbError when there is none yet.
    """
    studies = [
        {
            "name": name,
            "title": study.title,
            "claim": claim(comparison := read_json(path)),
            "verdicts": verdicts(comparison),
        }
        for name, study in params.studies.items()
        if (path := Path("reports/studies", f"{name}.json")).exists()
        and Path("reports", f"{name}.html").exists()
    ]
    lessons = {
        name: lesson.title
        for name, lesson in params.lessons.items()
        if Path("reports", f"{name}.html").exists()
    }
    if not studies and not lessons:
        raise WxbError("reports/: found no report of a study or lesson; run `dvc repro` first")
    parity = {path.stem: read_json(path) for path in sorted(PARITY.glob("*.json"))}
    with publish(INDEX) as (draft,):
        page = render("index.html", studies=studies, lessons=lessons, parity=parity)
        draft.write_text(page, encoding="utf-8")
    return INDEX
