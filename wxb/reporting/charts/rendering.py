"""Templates made into pages: HTML files that hold all they show and ask the network nothing.

jinja2 escapes all text that comes from data.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from wxb.metrics import Metric
from wxb.reporting.charts.figures import plain
from wxb.reporting.charts.formatting import (
    SHARE,
    amount,
    duration,
    interval,
    rounded,
    signed,
    size,
    words,
)
from wxb.reporting.charts.scores import goodness

DEEPEST = 62  # percent of colour in the cell of a perfect score, so that text on it stays legible


def render(
    package: str, template: str, charts: Mapping[str, go.Figure] | None = None, **content: Any
) -> Markup:
    """A page, or a part of one, from a template of the package, or else of this one.

    `charts` are by the id of their place in it; those that show nothing are left out.
    """
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("wxb.reporting.charts")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        score=rounded,
        two="{:.2f}".format,
        interval=interval,
        signed=lambda difference, metric=SHARE: signed(difference, metric).replace("-", "−"),
        count="{:,}".format,
        amount=amount,
        duration=duration,
        mebibytes=lambda number: size(number * 2**20),
        words=words,
        begin=lambda text: text[:1].upper() + text[1:],
        shade=shade,
        breakable=lambda key: Markup(".<wbr>").join(key.split(".")),
    )
    environment.globals.update(packed_plotly=packed_plotly)
    figures = {key: plain(chart) for key, chart in (charts or {}).items()}
    return Markup(
        environment.get_template(template).render(
            figures={key: figure for key, figure in figures.items() if _any(figure)}, **content
        )
    )


def packed_plotly() -> str:
    """Plotly's script, gzipped, in base64: 2.0 MB instead of 4.8."""
    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), mtime=0)).decode()


def shade(score: float, metric: Metric = SHARE, shown: Sequence[float] = ()) -> int:
    """Percent of colour for a score: the better, the deeper, whatever its scale and direction.

    It is squared, so that good ones can be told apart. `shown` are all scores beside it, which a
    metric without a largest value needs.
    """
    return round(DEEPEST * goodness(score, metric, shown) ** 2)


def _any(figure: Mapping[str, Any]) -> bool:
    return any(trace.get("x") or trace.get("z") for trace in figure["data"])
