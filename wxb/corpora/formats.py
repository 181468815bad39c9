"""Read unchecked records from JSON, JSONL, CSV and Parquet files."""

from __future__ import annotations

import ast
import csv
import io
import json
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from wxb.core.errors import WxbError
from wxb.corpora.layout import DELIMITERS, decode, decode_table
from wxb.corpora.records import RecordError

# Python's parser needs about 400 bytes of memory per character.
MAX_LITERAL = 200_000


class Raw(NamedTuple):
    """An unchecked record: its place in the file, and its content or a RecordError.

    `repaired` names repairs of the file, such as its encoding. `document` is the number of its
    document if the file marks documents.
    """

    place: str
    content: Any
    repaired: tuple[str, ...] = ()
    document: int | None = None


def raw_records(file: Path, parsed: str | None = None) -> Iterator[Raw]:
    """Yield the records of a file; its suffix names the format.

    Cells of CSV are text, except in the column `parsed`, which has JSON or Python literals. The
    delimiter and encoding of CSV are detected; `repaired` names a legacy encoding.

    Raises WxbError if the file is empty, not in its format, or in an unsupported encoding: JSON
    must be UTF-8, CSV may also be in one of `layout.LEGACY`.
    """
    match file.suffix.lower():
        case ".jsonl":
            return _jsonl(file)
        case ".csv" | ".tsv":
            return _csv(file, parsed)
        case ".parquet":
            return _parquet(file)
        case _:
            return _json(file)


def _json(file: Path) -> Iterator[Raw]:
    records = _parse(decode(file))
    if isinstance(records, RecordError):
        raise WxbError(
            f"{file}: {records.reason}: {records.detail};"
            " expected a list of records (for one record per line, use .jsonl)"
        )
    if not isinstance(records, list):
        raise WxbError(f"{file}: found a JSON {type(records).__name__}; expected a list of records")
    for index, content in enumerate(records, start=1):
        yield Raw(f"record {index}", content)


def _jsonl(file: Path) -> Iterator[Raw]:
    for index, line in enumerate(decode(file).split("\n"), start=1):
        if line.strip():
            yield Raw(f"line {index}", _parse(line))


def _csv(file: Path, parsed: str | None) -> Iterator[Raw]:
    csv.field_size_limit(2**31 - 1)
    text, legacy = decode_table(file)
    repaired = (f"read as {legacy}",) if legacy else ()
    if legacy:
        print(f"{file}: not UTF-8; read as {legacy}", file=sys.stderr)
    stream = io.StringIO(text, newline="")
    rows = csv.DictReader(stream, strict=True, delimiter=_delimiter(text))
    try:
        for row in rows:
            yield Raw(f"line {rows.line_num}", _unpack(row, parsed), repaired)
    except csv.Error as error:
        raise WxbError(f"{file}: line {rows.reader.line_num} is not CSV: {error}") from None


def _delimiter(text: str) -> str:
    """The first of DELIMITERS that splits the first row into the most cells."""
    first = re.split(r"[\r\n]", text, maxsplit=1)[0]
    return max(DELIMITERS, key=lambda mark: len(next(csv.reader([first], delimiter=mark), [])))


def _parquet(file: Path) -> Iterator[Raw]:
    index = 0
    try:
        for batch in pq.ParquetFile(file).iter_batches():
            for content in batch.to_pylist():
                index += 1
                yield Raw(f"row {index}", content)
    except (OSError, ValueError, pa.ArrowException) as error:
        message = " ".join(str(error).split())
        raise WxbError(f"{file} is not Parquet: {message}; fetch the file again") from None


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:  # also for long numbers and deep nesting
        return RecordError("broken JSON", str(error))


def _unpack(row: dict[str | None, Any], parsed: str | None) -> Any:
    """A CSV row with the cell of the column `parsed` parsed; None if that cell is empty."""
    if None in row or None in row.values():
        return RecordError("broken CSV", "another number of cells than the header has")
    if parsed in row:
        cell = row[parsed] or "null"
        row[parsed] = _parse(cell)
        if isinstance(row[parsed], RecordError):
            row[parsed] = _literal(cell, row[parsed].detail)
        if isinstance(row[parsed], RecordError):
            return row[parsed]
    return row


def _literal(cell: str, fault: str) -> Any:
    """Parse a Python literal, as pandas writes lists; never runs code."""
    if len(cell) > MAX_LITERAL:
        return RecordError("broken cell", f"no JSON ({fault}), and {len(cell)} characters long")
    try:
        with warnings.catch_warnings(action="ignore"):  # of invalid escapes in strings
            return ast.literal_eval(cell)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        return RecordError("broken cell", f"neither JSON ({fault}) nor a Python literal ({error})")
