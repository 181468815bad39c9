"""Tables that commands print."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from rich import box
from rich.console import (
    Console,
    ConsoleOptions,
    Group,
    JustifyMethod,
    RenderableType,
    RenderResult,
)
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

GAP = 2  # cells between two columns of a table with a header
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


class FittedTable:
    """A table that wraps between words, if all words fit.

    Columns after the first `required` ones are left out if they do not fit unwrapped.
    """

    def __init__(self, header: Sequence[str], rows: Sequence[Row], numbers: bool, required: int):
        self.header, self.rows, self.numbers, self.required = header, rows, numbers, required

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        columns = zip(self.header, *self.rows, strict=True)
        sizes = [[Measurement.get(console, options, cell) for cell in cells] for cells in columns]
        words = [max(size.minimum for size in column) for column in sizes]  # the longest ones
        widths = [max(size.maximum for size in column) for column in sizes]
        while len(widths) > self.required and sum(widths) > _room(options, len(widths)):
            widths.pop()
        room = max(_room(options, len(widths)), sum(words[: len(widths)]))
        while sum(widths) > room:
            widest = max(range(len(widths)), key=lambda i: (widths[i] > words[i], widths[i]))
            widths[widest] -= 1
        part = Table(
            box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0)
        )
        rows = [[*row][: len(widths)] for row in self.rows]
        _fill(part, self.header[: len(widths)], rows, self.numbers, widths)
        yield part


def _room(options: ConsoleOptions, columns: int) -> int:
    """The width of the cells of a row without the gaps between them."""
    return options.max_width - GAP * (columns - 1)


def table(
    header: Sequence[str],
    rows: Iterable[Row],
    *,
    title: str = "",
    numbers: bool = False,
    required: int | None = None,
) -> RenderableType:
    """A table with a header; `numbers` right-aligns all columns but the first.

    Columns after the first `required` ones are left out if they do not fit; by default none.
    """
    rows = [[Text(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    if not rows:
        return Text(title)
    fitted = FittedTable(header, rows, numbers, required or len(header))
    return Group(Text(title, style="bold"), fitted) if title else fitted


def grid(
    rows: Iterable[Row], *, columns: int = 2, title: str = "", numbers: bool = False
) -> RenderableType:
    """A table without a header, such as names and values; `numbers` as in `table`."""
    table = Table(box=None, show_header=False, pad_edge=False)
    _fill(table, [""] * columns, rows, numbers, [None] * columns)
    return Group(Text(title, style="bold"), table) if title else table


def _fill(
    table: Table,
    header: Sequence[str],
    rows: Iterable[Row],
    numbers: bool,
    widths: Sequence[int | None],
) -> None:
    for index, (name, width) in enumerate(zip(header, widths, strict=True)):
        justify: JustifyMethod = "right" if numbers and index > 0 else "left"
        table.add_column(Text(name), overflow="fold", justify=justify, width=width)
    for row in rows:
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
