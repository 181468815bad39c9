"""Records as they stand in JSON, JSONL, CSV and Parquet files, not yet checked."""

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

# Python's parser takes some 400 bytes a character.
LONGEST_LITERAL = 200_000


class Raw(NamedTuple):
    """A record as it stands in a file: its place there, and what it holds or why it is unusable.

    `document` is the number of its document, of a file that marks documents of several records.
    """

    place: str
    content: Any
    repaired: tuple[str, ...] = ()
    document: int | None = None


def raw_records(file: Path, parsed: str | None = None) -> Iterator[Raw]:
    """The records of a file, whose suffix tells its format; cells of CSV are text.

    Those of the column `parsed` hold JSON or what pandas writes of a list. The first row of CSV
    tells its delimiter; a table in a legacy encoding is read in what it is found to be, which each
    of its records tells among what was repaired.

    Raises WxbError for a file that is empty, not of its format or not in an encoding that it may
    have: UTF-8, or for CSV those of `layout.LEGACY`.
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
            " expected a list of records (one record a line is .jsonl)"
        )
    if not isinstance(records, list):
        raise WxbError(f"{file}: found a JSON {type(records).__name__}; expected a list of records")
    for number, content in enumerate(records, start=1):
        yield Raw(f"record {number}", content)


def _jsonl(file: Path) -> Iterator[Raw]:
    for number, line in enumerate(decode(file).split("\n"), start=1):
        if line.strip():
            yield Raw(f"line {number}", _parse(line))


def _csv(file: Path, parsed: str | None) -> Iterator[Raw]:
    csv.field_size_limit(2**31 - 1)
    text, legacy = decode_table(file)
    repaired = (f"read as {legacy}",) if legacy else ()
    if legacy:
        print(f"{file}: not UTF-8; read as {legacy}", file=sys.stderr)
    mark = divider(text)
    rows = csv.DictReader(io.StringIO(text, newline=""), strict=True, delimiter=mark)
    try:
        for row in rows:
            yield Raw(f"line {rows.line_num}", _unpack(row, parsed), repaired)
    except csv.Error as error:
        raise WxbError(f"{file}: line {rows.reader.line_num} is not CSV: {error}") from None


def divider(text: str) -> str:
    """The one of DELIMITERS that divides the first row into most cells; of several the first."""
    first = re.split(r"[\r\n]", text, maxsplit=1)[0]
    return max(DELIMITERS, key=lambda mark: len(next(csv.reader([first], delimiter=mark), [])))


def _parquet(file: Path) -> Iterator[Raw]:
    number = 0
    try:
        for batch in pq.ParquetFile(file).iter_batches():
            for content in batch.to_pylist():
                number += 1
                yield Raw(f"row {number}", content)
    except (OSError, ValueError, pa.ArrowException) as error:
        found = " ".join(str(error).split())
        raise WxbError(f"{file}: found {found}; expected Parquet: fetch the file again") from None


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:  # a number or a nesting may be too long, too
        return RecordError("broken JSON", str(error))


def _unpack(row: dict[str | None, Any], parsed: str | None) -> Any:
    """A CSV row with one cell parsed; an empty one says that nobody labelled the record."""
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
    """What pandas writes for a list in a cell: a Python literal, which is parsed, never run."""
    if len(cell) > LONGEST_LITERAL:
        return RecordError("broken cell", f"no JSON ({fault}), and {len(cell)} characters long")
    try:
        with warnings.catch_warnings(action="ignore"):  # of odd escapes in strings
            return ast.literal_eval(cell)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        return RecordError("broken cell", f"neither JSON ({fault}) nor a Python literal ({error})")
