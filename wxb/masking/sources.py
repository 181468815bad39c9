"""The texts inside files, one after the other; all else of a file comes along, byte by byte.

A file is read a document at a time: the whole of it, its lines, a field of each JSON line or a
column of each CSV row. What stands around a document, and how its characters are spelled (JSON's
escapes, CSV's quotes), is kept and written again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Literal

from wxb import WxbError
from wxb.masking import rows
from wxb.masking.documents import Document

Format = Literal["text", "jsonl", "csv"]
SUFFIXES: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "csv",
}

_BOM = "\ufeff"


@dataclass(frozen=True)
class Layout:
    """Where in a file the texts are. Without a `format`, its suffix says."""

    format: Format | None = None
    lines: bool = False  # of text: each line is a document
    field: str = "text"
    column: str = "text"

    def of(self, path: Path | None) -> Format:
        """The format of a file, or of standard input."""
        return self.format or (SUFFIXES.get(path.suffix.lower(), "text") if path else "text")


def read(file: BinaryIO, path: Path | None, name: str, layout: Layout) -> Iterator[Document]:
    """The documents of a file, whose written forms joined are the file.

    `name` stands for the file in errors. Raises WxbError for what is not UTF-8 or not of the
    format; errors tell the line and nothing of what it says.
    """
    chosen = layout.of(path)
    whole = chosen == "text" and not layout.lines
    lines = iter([decoded(file.read(), name)]) if whole else _lines(file, name)
    first = next(lines, "")
    if first.startswith(_BOM):
        yield Document("", before=_BOM)
        first = first.removeprefix(_BOM)
    lines = chain([first] if first else [], lines)
    if chosen == "jsonl":
        yield from rows.json_lines(lines, name, layout.field)
    elif chosen == "csv":
        yield from rows.csv_rows(lines, name, layout.column)
    else:
        for line in lines:
            text = line if whole else line.rstrip("\r\n")
            yield Document(text, after=line[len(text) :])


def decoded(content: bytes, name: str, line: int | None = None) -> str:
    """UTF-8 as text. Raises WxbError where it is not."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = line or content.count(b"\n", 0, error.start) + 1
        raise WxbError(
            f"{name}: line {line}: byte 0x{content[error.start]:02x} is not UTF-8; convert the file"
            " first, e.g. with iconv --to-code UTF-8"
        ) from None


def _lines(file: BinaryIO, name: str) -> Iterator[str]:
    """Lines with their ends, divided by line feeds alone."""
    for number, line in enumerate(file, 1):
        yield decoded(line, name, number)
