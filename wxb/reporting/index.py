"""The page that leads to those of all studies and lessons."""

from __future__ import annotations

from pathlib import Path

from wxb import paths
from wxb.charts.pairs import verdicts
from wxb.charts.rendering import render
from wxb.errors import WxbError
from wxb.files import publish, read_json
from wxb.params import Params
from wxb.reporting.lead import claim


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
        if (path := paths.study(name)).exists() and paths.page(name).exists()
    ]
    lessons = {
        name: lesson.title for name, lesson in params.lessons.items() if paths.page(name).exists()
    }
    if not studies and not lessons:
        raise WxbError("reports/: found no report of a study or lesson; run `dvc repro` first")
    parity = {
        path.stem: read_json(path) for path in sorted((paths.METRICS / paths.PARITY).glob("*.json"))
    }
    with publish(paths.INDEX) as (draft,):
        page = render(
            "wxb.reporting", "index.html", studies=studies, lessons=lessons, parity=parity
        )
        draft.write_text(page, encoding="utf-8")
    return paths.INDEX
