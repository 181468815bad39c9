"""The page that leads to those of all studies and lessons."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.files import publish, read_json
from wxb.core.params import Params
from wxb.reporting.charts.pairs import claim, verdicts
from wxb.reporting.charts.rendering import render

SAME = "generation_equal"  # begins the figures that are 1 where both models write the same


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
    lessons = [
        {"name": name, "title": lesson.title, "answer": described(paths.page(name))}
        for name, lesson in params.lessons.items()
        if paths.page(name).exists()
    ]
    if not studies and not lessons:
        raise WxbError("reports/: found no report of a study or lesson; run `dvc repro` first")
    parity = {
        path.stem: {key: _told(key, value) for key, value in read_json(path).items()}
        for path in sorted((paths.METRICS / paths.PARITY).glob("*.json"))
    }
    with publish(paths.INDEX) as (draft,):
        page = render(
            "wxb.reporting", "index.html", studies=studies, lessons=lessons, parity=parity
        )
        draft.write_text(page, encoding="utf-8")
    return paths.INDEX


class _Description(HTMLParser):
    """What a page says of itself in its head."""

    content = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if tag == "meta" and named.get("name") == "description":
            self.content = named.get("content") or ""


def described(page: Path) -> str:
    """The sentence in which a page tells what it found; empty where it has none."""
    head, _, _ = page.read_text(encoding="utf-8").partition("</head>")
    parser = _Description()
    parser.feed(head)
    return parser.content


def _told(key: str, value: float) -> str:
    """A figure of `parity` as people read it."""
    if key.startswith(SAME):
        return "yes" if value else "no"
    if isinstance(value, int) or not value:
        return f"{value:,.0f}"
    return f"{value:.1e}"
