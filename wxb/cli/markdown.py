"""Markdown for terminals, whose tables are never cut off, however narrow the terminal is."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Markdown, TableElement
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text


class TerminalMarkdown(Markdown):
    """Markdown whose tables break names at hyphens, and numbers between words.

    Columns that do not fit are in another table below, with the names repeated.
    """


class Name(NamedTuple):
    """A name that breaks at its hyphens if it does not fit."""

    text: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text("\n".join(textwrap.wrap(self.text, options.max_width)))

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        parts = textwrap.wrap(self.text, 1, break_long_words=False)
        return Measurement(max(map(len, parts), default=0), len(self.text))


class _Columns(TableElement):
    """A table of names in the first column and numbers in the others."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        assert self.header is not None
        assert self.header.row is not None
        assert self.body is not None
        rows = [self.header.row, *self.body.rows]
        first, *numbers = zip(*([cell.content for cell in row.cells] for row in rows), strict=True)
        names = [Name(name.plain) for name in first]
        table = _table(names, numbers)
        width = table.__rich_measure__(console, options.update(width=10_000)).maximum
        if width <= options.max_width:
            yield from (table, "")
        else:
            least = max(name.__rich_measure__(console, options).minimum for name in names)
            for group in _group_columns(numbers, options.max_width - least):
                yield from (_table(names, group, narrow=True), "")


def _group_columns(columns: Sequence[Sequence[Text]], room: int) -> Iterator[list[Sequence[Text]]]:
    """Groups of columns that fit side by side; at least one column each."""
    group: list[Sequence[Text]] = []
    width = 0
    for column in columns:
        if group and width + _width(column) + 1 > room:
            yield group
            group, width = [], 0
        group.append(column)
        width += _width(column) + 1
    yield group


def _table(
    names: Sequence[Name], columns: Sequence[Sequence[Text]], *, narrow: bool = False
) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 0 if narrow else 1)
    )
    table.add_column(names[0], overflow="fold")
    for title, *_ in columns:
        table.add_column(title, overflow="fold")
    for row, name in enumerate(names[1:], start=1):
        table.add_row(name, *(column[row] for column in columns))
    if narrow:
        for column, cells in zip(table.columns[1:], columns, strict=True):
            column.width = _width(cells)
    return table


def _width(cells: Sequence[Text]) -> int:
    """The length of the longest word."""
    return max(len(word) for cell in cells for word in cell.plain.split())


TerminalMarkdown.elements = {**Markdown.elements, "table_open": _Columns}
