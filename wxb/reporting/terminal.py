"""Tables that commands print."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
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


class FittedTable:
    """A table without those columns after the first `required` ones that do not fit."""

    def __init__(self, header: Sequence[str], rows: Sequence[Row], numbers: bool, required: int):
        self.header, self.rows, self.numbers, self.required = header, rows, numbers, required

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for count in range(len(self.header), self.required - 1, -1):
            part = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
            _fill(part, self.header[:count], [[*row][:count] for row in self.rows], self.numbers)
            unlimited = options.update_width(10_000)
            if Measurement.get(console, unlimited, part).maximum <= options.max_width:
                break
        yield part


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
    rows = [*rows]
    if not rows:
        return Text(title)
    fitted = FittedTable(header, rows, numbers, required or len(header))
    return Group(Text(title, style="bold"), fitted) if title else fitted


def grid(
    rows: Iterable[Row], *, columns: int = 2, title: str = "", numbers: bool = False
) -> RenderableType:
    """A table without a header, such as names and values; `numbers` as in `table`."""
    table = Table(box=None, show_header=False, pad_edge=False)
    _fill(table, [""] * columns, rows, numbers)
    return Group(Text(title, style="bold"), table) if title else table


def _fill(table: Table, header: Sequence[str], rows: Iterable[Row], numbers: bool) -> None:
    for index, name in enumerate(header):
        right = numbers and index > 0
        table.add_column(Text(name), overflow="fold", justify="right" if right else "left")
    for row in rows:
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
