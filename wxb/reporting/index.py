"""reports/index.html, which links the pages of all studies and lessons."""

from __future__ import annotations

import html
import re
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup

from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.files import publish
from wxb.core.params import Params
from wxb.reporting.charts.formatting import Table
from wxb.reporting.charts.parts import Section
from wxb.reporting.charts.rendering import render


def write_index(params: Params) -> Path:
    """Write reports/index.html for all existing pages, and return its path.

    Raises WxbError if there is no page yet.
    """
    link = Markup('<a href="{}.html">{}</a>')
    sections = []
    for title, blocks in (("Studies", params.studies), ("Lessons", params.lessons)):
        rows = [
            [link.format(quote(name), block.title), read_description(paths.page(name))]
            for name, block in blocks.items()
            if paths.page(name).exists()
        ]
        if rows:
            table = Table(title, ["question", "answer"], rows)
            sections.append(Section(title.lower(), title, [table]))
    if not sections:
        raise WxbError("reports/: found no report of a study or lesson; run `dvc repro` first")
    with publish(paths.INDEX) as (draft,):
        page = render("Reports", "Results of the studies and lessons of this project.", sections)
        draft.write_text(page, encoding="utf-8")
    return paths.INDEX


def read_description(page: Path) -> str:
    """The description in the head of a page; empty if it has none."""
    head, _, _ = page.read_text(encoding="utf-8").partition("</head>")
    match = re.search('<meta name="description" content="([^"]*)">', head)
    return html.unescape(match[1]) if match else ""
