"""Read the documents of a file, with all bytes around them.

A document is the whole file, a line, a field of a JSON line or a column of a CSV row. All else in
the file, including JSON escapes and CSV quotes, is kept byte by byte.
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
    """Where the texts are in a file."""

    format: Format | None = None  # None: from the suffix
    lines: bool = False  # of text: each line is a document
    field: str = "text"
    column: str = "text"

    def format_of(self, path: Path | None) -> Format:
        """The format of a file, or of standard input."""
        return self.format or (SUFFIXES.get(path.suffix.lower(), "text") if path else "text")


def read_documents(
    file: BinaryIO, path: Path | None, name: str, layout: Layout
) -> Iterator[Document]:
    """The documents of a file. Their bytes without edits, joined, are those of the file.

    `name` is that of the file in errors. Raises WxbError if the file is not UTF-8 or not in its
    format; errors have the line number, never its content.
    """
    format_ = layout.format_of(path)
    is_one_document = format_ == "text" and not layout.lines
    lines = iter([_decode(file.read(), name)]) if is_one_document else _lines(file, name)
    first = next(lines, "")
    if first.startswith(_BOM):
        yield Document("", before=_BOM)
        first = first.removeprefix(_BOM)
    lines = chain([first] if first else [], lines)
    if format_ == "jsonl":
        yield from rows.json_lines(lines, name, layout.field)
    elif format_ == "csv":
        yield from rows.csv_rows(lines, name, layout.column)
    else:
        for line in lines:
            text = line if is_one_document else line.rstrip("\r\n")
            yield Document(text, after=line[len(text) :])


def _decode(content: bytes, name: str, line: int | None = None) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = line or content.count(b"\n", 0, error.start) + 1
        raise WxbError(
            f"{name}: line {line}: byte 0x{content[error.start]:02x} is not UTF-8; convert the file"
            " first, e.g. with iconv --to-code UTF-8"
        ) from None


def _lines(file: BinaryIO, name: str) -> Iterator[str]:
    """Lines with their ends; only line feeds separate them."""
    for number, line in enumerate(file, 1):
        yield _decode(line, name, number)
