"""Markdown for terminals, whose tables are never cut off, however narrow the terminal is."""

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Markdown, TableElement

from wxb.reporting.terminal import table


class TerminalMarkdown(Markdown):
    """Markdown whose tables are those of `wxb.reporting.terminal`."""


class _Table(TableElement):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        assert self.header is not None
        assert self.header.row is not None
        assert self.body is not None
        rows = [self.header.row, *self.body.rows]
        header, *cells = ([cell.content for cell in row.cells] for row in rows)
        yield table([title.plain for title in header], cells, numbers=True)
        yield ""


TerminalMarkdown.elements = {**Markdown.elements, "table_open": _Table}
