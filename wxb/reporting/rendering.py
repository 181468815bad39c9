"""Templates made into pages: HTML files that hold all they show and ask the network nothing.

jinja2 escapes all text that comes from data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import plotly.graph_objects as go
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from wxb.reporting.figures import plain
from wxb.reporting.wording import amount, duration, words

DEEPEST = 62  # percent of colour in a cell of score 1, so that text on it stays legible


def render(template: str, drawn: Mapping[str, go.Figure], **content: Any) -> str:
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
    )
    return environment.get_template(template).render(
        figures={key: plain(figure) for key, figure in drawn.items()},
        plotly=Markup(get_plotlyjs()),
        **content,
    )


def shade(score: float) -> int:
    """Percent of colour for a score in [0, 1]; squared, so that good ones can be told apart."""
    return round(DEEPEST * score**2)
