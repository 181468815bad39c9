"""Tables that commands print."""

import json
from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

Row = Iterable[RenderableType]  # of cells; a str is plain text, without Rich's markup


def show(*parts: RenderableType) -> None:
    """Print tables and texts without markup; outside a terminal, a str is not wrapped."""
    console = Console()
    for part in parts:
        soft_wrap = isinstance(part, str) and not console.is_terminal
        console.print(part, markup=False, highlight=False, soft_wrap=soft_wrap)


def show_json(content: object) -> None:
    """Print an object as indented JSON."""
    print(json.dumps(content, ensure_ascii=False, indent=2))


def table(
    header: Sequence[str], rows: Iterable[Row], *, title: str = "", numeric: bool = False
) -> RenderableType:
    """A Rich table. Under a header, column 1 does not wrap; `numeric` aligns the others right."""
    part = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    if not header:
        part = Table(box=None, show_header=False, pad_edge=False)
    for index, name in enumerate(header):
        part.add_column(Text(name), no_wrap=index == 0)
    for row in rows:
        part.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    for column in part.columns:
        column.overflow = "fold"
    for column in part.columns[1:] if numeric else ():
        column.justify = "right"
    return Group(Text(title, style="bold"), part) if title else part
