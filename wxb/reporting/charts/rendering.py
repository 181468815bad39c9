"""Jinja templates rendered as self-contained HTML files, which load nothing from the network."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from wxb.core.wording import counted
from wxb.metrics import Metric
from wxb.reporting.charts.figures import to_json
from wxb.reporting.charts.formatting import (
    SHARE,
    amount,
    duration,
    interval,
    p_value,
    rounded,
    signed,
    size,
    words,
)
from wxb.reporting.charts.scores import goodness

DEEPEST = 62  # percent of colour in the cell of a perfect score, so that text on it stays legible


def render(
    package: str, template: str, charts: Mapping[str, go.Figure] | None = None, **context: Any
) -> Markup:
    """A page, or a part of one, from a template in a package or in wxb.reporting.charts.

    `charts` are by the id of their element in the template; empty ones are left out. Text from
    data is escaped.
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
        p_value=p_value,
        signed=lambda difference, metric=SHARE: signed(difference, metric).replace("-", "−"),
        count="{:,}".format,
        counted=counted,
        amount=amount,
        duration=duration,
        mebibytes=lambda number: size(number * 2**20),
        words=words,
        begin=lambda text: text[:1].upper() + text[1:],
        shade=shade,
        breakable=lambda key: Markup(".<wbr>").join(key.split(".")),
    )
    environment.globals.update(packed_plotly=packed_plotly)
    figures = {key: to_json(chart) for key, chart in (charts or {}).items()}
    return Markup(
        environment.get_template(template).render(
            figures={key: figure for key, figure in figures.items() if _has_data(figure)},
            **context,
        )
    )


def packed_plotly() -> str:
    """Plotly's script, gzipped, in base64: 2.0 MB instead of 4.8."""
    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), mtime=0)).decode()


def shade(score: float, metric: Metric = SHARE, scores: Sequence[float] = ()) -> int:
    """The percentage of colour in a score's cell: better scores are deeper.

    Squaring separates good scores. Metrics without a largest value need `scores`, those of the
    whole table.
    """
    return round(DEEPEST * goodness(score, metric, scores) ** 2)


def _has_data(figure: Mapping[str, Any]) -> bool:
    return any(trace.get("x") or trace.get("z") for trace in figure["data"])
