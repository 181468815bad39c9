"""Pages from templates/: jinja2 escapes all text that comes from data."""

from __future__ import annotations

import base64
import gzip
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from wxb.reporting.grids import shade
from wxb.reporting.wording import amount, duration, words


def render(template: str, **values: Any) -> str:
    """The page that a template makes of `values`, as HTML."""
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
    return environment.get_template(template).render(values)


def packed_plotly() -> str:
    """Plotly's script, gzipped, in base64: 2.0 MB instead of 4.8."""
    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), mtime=0)).decode()
