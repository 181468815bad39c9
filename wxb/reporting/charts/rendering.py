"""Pages as self-contained HTML files, which load nothing from the network."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Mapping, Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined
from plotly.offline import get_plotlyjs

from wxb.reporting.charts.figures import Chip, to_json
from wxb.reporting.charts.parts import Section


def render(
    title: str,
    answer: str,
    sections: Sequence[Section],
    *,
    notes: Sequence[str] = (),
    chips: Mapping[str, Chip] | None = None,
    footer: str = "",
) -> str:
    """A page: its title, its answer with notes, and its sections.

    `chips` precede these names in tables, summaries and examples. Text from data is escaped.
    """
    environment = Environment(
        loader=PackageLoader("wxb.reporting.charts"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(packed_plotly=packed_plotly, to_json=to_json, chips=chips or {})
    page = environment.get_template("page.html").render(
        title=title, answer=answer, notes=notes, sections=sections, footer=footer
    )
    return page.lstrip()  # no blank lines of the macros before the doctype


def packed_plotly() -> str:
    """Plotly's script, gzipped, in base64: 2.0 MB instead of 4.8."""
    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), mtime=0)).decode()
