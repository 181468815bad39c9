"""Tables that commands print."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from rich import box
from rich.columns import Columns
from rich.console import (
    Console,
    ConsoleOptions,
    Group,
    JustifyMethod,
    RenderableType,
    RenderResult,
)
from rich.measure import measure_renderables
from rich.padding import Padding
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
    """A table whose columns wrap between words only; too wide a table becomes a list of rows."""

    def __init__(self, header: Sequence[str], rows: Iterable[Row], *, numbers: bool) -> None:
        cells = [tuple(Text(c) if isinstance(c, str) else c for c in row) for row in rows]
        self.header, self.rows, self.numbers = header, cells, numbers

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        columns = [
            [Text(title), *column]
            for title, column in zip(self.header, zip(*self.rows, strict=True), strict=True)
        ]
        # The shortest width of each column without a broken word, and the one without wrapping.
        sizes = [[measure_renderables(console, options, [c]) for c in column] for column in columns]
        least = [max(size.minimum for size in column) for column in sizes]
        widths = [max(size.maximum for size in column) for column in sizes]
        room = options.max_width - GAP * (len(columns) - 1)
        if sum(least) > room:
            yield from self._list()
            return
        while sum(widths) > room:
            widest = max(range(len(widths)), key=lambda i: (widths[i] > least[i], widths[i]))
            widths[widest] -= 1
        grid = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
        for index, (title, width) in enumerate(zip(self.header, widths, strict=True)):
            right = self.numbers and index > 0
            _add_column(grid, Text(title), right=right, width=width)
        for row in self.rows:
            grid.add_row(*row)
        yield grid

    def _list(self) -> RenderResult:
        """The first cell of each row, then the others with their titles."""
        for first, *others in self.rows:
            cells = [
                Text.assemble(f"{title}: ", cell) if isinstance(cell, Text) else cell
                for title, cell in zip(self.header[1:], others, strict=True)
            ]
            yield first
            yield Padding(Columns(cells, padding=(0, 3)), (0, 0, 0, 2))


def table(
    header: Sequence[str], rows: Iterable[Row], *, title: str = "", numbers: bool = False
) -> RenderableType:
    """A table with a header; `numbers` right-aligns all columns but the first."""
    rows = [tuple(row) for row in rows]
    if not rows:
        return Text(title)
    fitted = FittedTable(header, rows, numbers=numbers)
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
