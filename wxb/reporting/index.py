"""reports/index.html, which links the pages of all studies and lessons."""

from __future__ import annotations

import html
import re
from pathlib import Path

from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.files import publish, read_json
from wxb.core.params import Params
from wxb.reporting.charts.pairs import claim, verdicts
from wxb.reporting.charts.rendering import render


def write_index(params: Params) -> Path:
    """Write reports/index.html for all existing pages, and return its path.

    Raises WxbError if there is no page yet.
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
    lessons = [
        {"name": name, "title": lesson.title, "answer": read_description(paths.page(name))}
        for name, lesson in params.lessons.items()
        if paths.page(name).exists()
    ]
    if not studies and not lessons:
        raise WxbError("reports/: found no report of a study or lesson; run `dvc repro` first")
    with publish(paths.INDEX) as (draft,):
        page = render("wxb.reporting", "index.html", studies=studies, lessons=lessons)
        draft.write_text(page, encoding="utf-8")
    return paths.INDEX


def read_description(page: Path) -> str:
    """The description in the head of a page; empty if it has none."""
    head, _, _ = page.read_text(encoding="utf-8").partition("</head>")
    match = re.search('<meta name="description" content="([^"]*)">', head)
    return html.unescape(match[1]) if match else ""
