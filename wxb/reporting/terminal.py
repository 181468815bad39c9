"""Tables that commands print."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

Row = Iterable[RenderableType]  # of cells; a str is plain text, without Rich's markup


def show(*parts: RenderableType, stderr: bool = False) -> None:
    """Print tables and texts at the width of the terminal, without interpreting markup."""
    console = Console(stderr=stderr)
    for part in parts:
        console.print(part, markup=False, highlight=False)


def show_sentence(text: str) -> None:
    """Print a text in plain style, wrapped between words on a terminal and unwrapped elsewhere."""
    console = Console()
    console.print(Text(text), highlight=False, soft_wrap=not console.is_terminal)


def show_json(content: object) -> None:
    """Print an object as indented JSON."""
    print(json.dumps(content, ensure_ascii=False, indent=2))


def table(
    header: Sequence[str],
    rows: Iterable[Row],
    *,
    title: str = "",
    numbers: bool = False,
    no_wrap: bool = False,
) -> RenderableType:
    """A table with a header.

    `numbers` right-aligns all columns but the first; `no_wrap` wraps only the first column.
    """
    grid = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for index, column in enumerate(header):
        _add_column(grid, Text(column), right=numbers and index > 0, no_wrap=no_wrap and index > 0)
    return _with_rows(grid, rows, title)


def grid(
    rows: Iterable[Row], *, columns: int = 2, title: str = "", numbers: bool = False
) -> RenderableType:
    """A table without a header, such as names and values; `numbers` as in `table`."""
    grid = Table(box=None, show_header=False, pad_edge=False)
    for index in range(columns):
        _add_column(grid, "", right=numbers and index > 0)
    return _with_rows(grid, rows, title)


def _add_column(grid: Table, header: RenderableType, *, right: bool, no_wrap: bool = False) -> None:
    justify: JustifyMethod = "right" if right else "left"
    grid.add_column(header, overflow="fold", justify=justify, no_wrap=no_wrap)


def _with_rows(grid: Table, rows: Iterable[Row], title: str) -> RenderableType:
    for row in rows:
        grid.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return Group(Text(title, style="bold"), grid) if title else grid
