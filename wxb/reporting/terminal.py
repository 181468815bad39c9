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
from rich.measure import measure_renderables
from rich.table import Table
from rich.text import Text

GAP = 3  # cells between two columns of a table with a header
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
    """A table whose columns wrap between words only.

    Columns that do not fit are in another table below, with the first column repeated.
    Those after the first `required` ones are left out unless all fit without wrapped cells.
    """

    def __init__(
        self, header: Sequence[str], rows: Iterable[Row], *, numbers: bool, required: int
    ) -> None:
        cells = [tuple(Text(c) if isinstance(c, str) else c for c in row) for row in rows]
        self.header, self.rows, self.numbers = header, cells, numbers
        self.required = required

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        columns = [
            [Text(title), *column]
            for title, column in zip(self.header, zip(*self.rows, strict=True), strict=True)
        ]
        sizes = [[measure_renderables(console, options, [c]) for c in column] for column in columns]
        unwrapped = [max(title.minimum, *(c.maximum for c in cells)) for title, *cells in sizes]
        count = len(columns)
        while count > self.required and sum(unwrapped[:count]) > _room(options, count):
            count -= 1
        # The shortest width of each column without a broken word, and the one without wrapping.
        least = [max(size.minimum for size in column) for column in sizes[:count]]
        widths = [max(size.maximum for size in column) for column in sizes[:count]]
        room = _room(options, count)
        if sum(least) > room and count > 2:
            fitting = (n for n in range(count - 1, 2, -1) if sum(least[:n]) <= _room(options, n))
            first = next(fitting, 2)
            yield self._part(range(first))
            yield ""
            yield self._part([0, *range(first, count)])
            return
        while sum(widths) > room:
            widest = max(range(len(widths)), key=lambda i: (widths[i] > least[i], widths[i]))
            widths[widest] -= 1
        grid = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
        for index, (title, width) in enumerate(zip(self.header, widths, strict=False)):
            right = self.numbers and index > 0
            _add_column(grid, Text(title), right=right, width=width)
        for row in self.rows:
            grid.add_row(*row[:count])
        yield grid

    def _part(self, columns: Sequence[int]) -> FittedTable:
        """A table of some columns."""
        header = [self.header[i] for i in columns]
        rows = [[row[i] for i in columns] for row in self.rows]
        return FittedTable(header, rows, numbers=self.numbers, required=len(columns))


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
    rows = [tuple(row) for row in rows]
    if not rows:
        return Text(title)
    fitted = FittedTable(header, rows, numbers=numbers, required=required or len(header))
    return Group(Text(title, style="bold"), fitted) if title else fitted


def grid(
    rows: Iterable[Row], *, columns: int = 2, title: str = "", numbers: bool = False
) -> RenderableType:
    """A table without a header, such as names and values; `numbers` as in `table`."""
    grid = Table(box=None, show_header=False, pad_edge=False)
    for index in range(columns):
        _add_column(grid, "", right=numbers and index > 0)
    return _with_rows(grid, rows, title)


def _add_column(
    grid: Table, header: RenderableType, *, right: bool, width: int | None = None
) -> None:
    justify: JustifyMethod = "right" if right else "left"
    grid.add_column(header, overflow="fold", justify=justify, width=width)


def _with_rows(grid: Table, rows: Iterable[Row], title: str) -> RenderableType:
    for row in rows:
        grid.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return Group(Text(title, style="bold"), grid) if title else grid
