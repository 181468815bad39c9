"""Templates made into pages: HTML files that hold all they show and ask the network nothing.

jinja2 escapes all text that comes from data.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Mapping
from typing import Any

import plotly.graph_objects as go
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from wxb.reporting.figures import plain
from wxb.reporting.wording import amount, duration, words

DEEPEST = 62  # percent of colour in a cell of score 1, so that text on it stays legible


def render(template: str, drawn: Mapping[str, go.Figure] | None = None, **content: Any) -> str:
    """A page from its template; `drawn` are its figures by the id of their place in it."""
    environment = Environment(
        loader=PackageLoader("wxb.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        score="{:.3f}".format,
        two="{:.2f}".format,
        signed=lambda number: f"{number:+.3f}".replace("-", "−"),
        count="{:,}".format,
        amount=amount,
        duration=duration,
        words=words,
        shade=shade,
        breakable=lambda key: Markup(".<wbr>").join(key.split(".")),
    )
    environment.globals.update(packed_plotly=packed_plotly)
    return environment.get_template(template).render(
        figures={key: plain(figure) for key, figure in (drawn or {}).items()}, **content
    )


def packed_plotly() -> str:
    """Plotly's script, gzipped, in base64: 2.0 MB instead of 4.8."""
    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), mtime=0)).decode()


def shade(score: float) -> int:
    """Percent of colour for a score in [0, 1]; squared, so that good ones can be told apart."""
    return round(DEEPEST * score**2)
