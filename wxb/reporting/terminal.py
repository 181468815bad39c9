"""Tables that commands print."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

GAP = 2  # cells between two columns of a table with a header: padding and divider
Row = Iterable[RenderableType]  # of cells; a str is plain text, without Rich's markup
Rows = Iterable[Row]


def show(*parts: RenderableType) -> None:
    """Print tables and plain texts, wrapped at the width of a terminal; texts only there."""
    console = Console()
    for part in parts:
        soft_wrap = isinstance(part, str) and not console.is_terminal
        console.print(part, markup=False, highlight=False, soft_wrap=soft_wrap)


def show_json(content: object) -> None:
    """Print an object as indented JSON."""
    print(json.dumps(content, ensure_ascii=False, indent=2))


class FittedTable:
    """A table, header first, without those columns after `required` ones that do not fit."""

    def __init__(self, rows: list[list[RenderableType]], required: int) -> None:
        self.rows, self.required = rows, required

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        columns = zip(*self.rows, strict=True)
        sizes = [[Measurement.get(console, options, cell) for cell in cells] for cells in columns]
        words = [max(size.minimum for size in column) for column in sizes]  # the longest ones
        widths = [max(size.maximum for size in column) for column in sizes]
        room = options.max_width + GAP  # the last column has no gap
        while len(widths) > self.required and sum(widths) + GAP * len(widths) > room:
            widths.pop()
        fits = sum(words[: len(widths)]) + GAP * len(widths) <= room
        part = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
        for title, word, width in zip(self.rows[0], words, widths, strict=False):
            part.add_column(title, min_width=word * fits, no_wrap=fits and word == width)
        for row in self.rows[1:]:
            part.add_row(*row[: len(widths)])
        yield part


def table(
    header: Sequence[str], rows: Rows, *, title: str = "", numbers: bool = False, required: int = 0
) -> RenderableType:
    """A table with a header; `numbers` right-aligns all columns but the first.

    Columns after the first `required` ones are left out if they do not fit; if 0, none.
    """
    cells = _cells([header, *rows], numbers)
    fitted = FittedTable(cells, required or len(header)) if cells[1:] else ""
    return Group(Text(title, style="bold"), fitted) if title else fitted


def grid(rows: Rows, *, title: str = "", numbers: bool = False) -> RenderableType:
    """A table without a header, such as names and values; `numbers` as in `table`."""
    table = Table(box=None, show_header=False, pad_edge=False)
    for row in _cells(rows, numbers):
        table.add_row(*row)
    return Group(Text(title, style="bold"), table) if title else table


def _cells(rows: Rows, numbers: bool) -> list[list[RenderableType]]:
    return [[_cell(cell, numbers and index > 0) for index, cell in enumerate(row)] for row in rows]


def _cell(cell: RenderableType, right: bool) -> RenderableType:
    text = Text(cell) if isinstance(cell, str) else cell
    if isinstance(text, Text):
        text.overflow, text.justify = "fold", "right" if right else "left"
    return text
