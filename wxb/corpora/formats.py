"""Read unchecked records from JSON, JSONL, CSV, Parquet, Arrow and DocBin files."""

from __future__ import annotations

import ast
import csv
import io
import json
import re
import sys
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from wxb.core.errors import WxbError
from wxb.corpora import class_names
from wxb.corpora.adapters import adapt
from wxb.corpora.layout import DELIMITERS, TABLES, decode, decode_lines, decode_table
from wxb.corpora.records import RecordError

# Python's parser needs about 400 bytes of memory per character.
MAX_LITERAL = 200_000
MAX_EXPANSION = 100  # of Parquet, by compression and repeated values
MIB = 2**20
BATCH = 1000  # rows of Parquet: a repeated value is stored once, and unpacked for each row


class Raw(NamedTuple):
    """An unchecked record: its place in the file, and its content or a RecordError.

    `repaired` names repairs of the file, such as its encoding. `document` is the number of its
    document if the file marks documents.
    """

    place: str
    content: Any
    repaired: tuple[str, ...] = ()
    document: int | None = None


def raw_records(
    file: Path, parsed: str | None = None, columns: Sequence[str] | None = None
) -> Iterator[Raw]:
    """Yield the records of a file; its suffix names the format.

    Cells of CSV are text, except in the column `parsed`, which has JSON or Python literals. The
    delimiter and encoding of CSV are detected; `repaired` names a legacy encoding. `columns` are
    the names of the columns of tables without a header, and of lines with tabs in other files.
    Records of annotation tools are converted by `adapt`, numbers of classes by `class_names`.

    Raises WxbError if the file is empty, not in its format, or in an unsupported encoding: JSON
    must be UTF-8, CSV may also be in one of `layout.LEGACY`. DocBin needs spaCy.
    """
    names = class_names.names_of(file)
    for raw in _unconverted(file, parsed, columns):
        try:
            yield raw._replace(content=adapt(class_names.decode(raw.content, names)))
        except RecordError as error:
            yield raw._replace(content=error)


def _unconverted(file: Path, parsed: str | None, columns: Sequence[str] | None) -> Iterator[Raw]:
    """The records of a file as they are in it."""
    suffix = file.suffix.lower()
    if columns:
        return _without_header(file, columns)
    match suffix:
        case ".jsonl":
            return _jsonl(file)
        case ".csv" | ".tsv":
            return _csv(file, parsed)
        case ".parquet":
            return _parquet(file)
        case ".arrow":
            return _arrow(file)
        case ".spacy":
            return _docbin(file)
        case _:
            return _json(file)


def _json(file: Path) -> Iterator[Raw]:
    text = decode(file)
    records = _parse(text)
    if isinstance(records, RecordError):
        # `Dataset.to_json` writes one record per line, whatever the suffix.
        if isinstance(_parse(text.partition("\n")[0]), Mapping):
            yield from _jsonl(file)
            return
        raise WxbError(
            f"{file}: {records.reason}: {records.detail};"
            " expected a list of records (for one record per line, use .jsonl)"
        )
    if _is_object_by_id(records):
        records = [{"id": id_, **record} for id_, record in records.items()]
    if isinstance(records, Mapping) and records:
        # The annotations of spaCy's tuples, as some tools wrap them; else a file for each document.
        records = records.get("annotations") if "classes" in records else [records]
    if not isinstance(records, list):
        raise WxbError(f"{file}: found a JSON {type(records).__name__}; expected a list of records")
    for index, content in enumerate(records, start=1):
        yield Raw(f"record {index}", content)


def _is_object_by_id(content: Any) -> bool:
    """Whether a JSON value is an object of several records by their ids."""
    return (
        isinstance(content, Mapping)
        and len(content) > 1
        and all(isinstance(record, Mapping) for record in content.values())
    )


def _jsonl(file: Path) -> Iterator[Raw]:
    for index, line in enumerate(decode_lines(file), start=1):
        if line.strip():
            yield Raw(f"line {index}", _parse(line))


def _csv(file: Path, parsed: str | None) -> Iterator[Raw]:
    text, repaired = _decode_table(file)
    stream = io.StringIO(text, newline="")
    rows = csv.DictReader(stream, strict=True, delimiter=_delimiter(text))
    try:
        counts = Counter(rows.fieldnames)
        if repeated := [name for name, count in counts.items() if name and count > 1]:
            raise WxbError(
                f"{file}: two columns are called {repeated[0]!r}; rename or remove one, or add a"
                " first line with the names of the columns if it has none"
            )
        for row in rows:
            yield Raw(f"line {rows.line_num}", _unpack(row, parsed), repaired)
    except csv.Error as error:
        raise WxbError(f"{file}: line {rows.reader.line_num} is not CSV: {error}") from None


def _delimiter(text: str) -> str:
    """The first of DELIMITERS that splits the first row into the most cells."""
    first = re.split(r"[\r\n]", text, maxsplit=1)[0]
    return max(DELIMITERS, key=lambda mark: len(next(csv.reader([first], delimiter=mark), [])))


def _without_header(file: Path, columns: Sequence[str]) -> Iterator[Raw]:
    """The rows of a table, or the lines with tabs of another file."""
    is_table = file.suffix.lower() in TABLES
    text, repaired = _decode_table(file) if is_table else (decode(file), ())
    rows = split_rows(text, file.suffix) if is_table else split_lines(text)
    for number, cells in rows:
        content: Any = dict(zip(columns, cells, strict=False))
        if len(cells) < len(columns):
            detail = f"found {len(cells)} cells, expected {len(columns)}"
            content = RecordError("broken line", detail)
        yield Raw(f"line {number}", content, repaired)


def split_rows(text: str, suffix: str = ".csv") -> list[tuple[int, list[str]]]:
    """The numbers of lines and the cells of a table without a header.

    The delimiter is the first of DELIMITERS that splits the most rows into the same number of
    cells; tabs come first by the suffix `.tsv`. If a table with tabs is not CSV, its quotation
    marks are text.
    """
    delimiters = f"\t{DELIMITERS}" if suffix.lower() == ".tsv" else DELIMITERS
    tables = [_split(text, delimiter) for delimiter in delimiters]
    return max(tables, key=_consistency)


def _split(text: str, delimiter: str) -> list[tuple[int, list[str]]]:
    csv.field_size_limit(2**31 - 1)
    rows = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
    try:
        return [(rows.line_num, row) for row in rows if row]
    except csv.Error:
        return list(split_lines(text)) if delimiter == "\t" else []


def _consistency(rows: Sequence[tuple[int, Sequence[str]]]) -> float:
    """The share of rows with the most frequent number of cells, if it is above 1."""
    widths = Counter(len(cells) for _, cells in rows)
    width, count = widths.most_common(1)[0] if widths else (0, 0)
    return count / len(rows) if width > 1 else 0.0


def split_lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """The numbers and the tab-separated cells of lines that are not blank."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line.rstrip("\r").split("\t")


def _decode_table(file: Path) -> tuple[str, tuple[str, ...]]:
    """The text of a table, and a note on its encoding, which is also printed."""
    csv.field_size_limit(2**31 - 1)
    text, legacy = decode_table(file)
    if legacy:
        _report_encoding(file.resolve(), legacy)
    return text, (f"read as {legacy}",) if legacy else ()


@cache
def _report_encoding(file: Path, encoding: str) -> None:
    """Print the encoding of a file once."""
    print(f"{file.name}: not UTF-8; read as {encoding}", file=sys.stderr)


def _parquet(file: Path) -> Iterator[Raw]:
    return _batches(file, "Parquet", lambda: _read_parquet(file))


def _read_parquet(file: Path) -> Iterator[pa.RecordBatch]:
    content = pq.ParquetFile(file)
    _check_unpacked(file, content.metadata)
    yield from content.iter_batches(BATCH)


def _arrow(file: Path) -> Iterator[Raw]:
    return _batches(file, "Arrow", lambda: class_names.open_arrow(file))


def _batches(
    file: Path, name: str, batches: Callable[[], Iterable[pa.RecordBatch]]
) -> Iterator[Raw]:
    """The rows of batches. Raises WxbError if the file is damaged."""
    index = 0
    try:
        for batch in batches():
            for content in batch.to_pylist():
                index += 1
                yield Raw(f"row {index}", content)
    except (OSError, ValueError, pa.ArrowException) as error:
        message = " ".join(str(error).split())
        raise WxbError(f"{file} is not {name}: {message}; fetch the file again") from None


def _docbin(file: Path) -> Iterator[Raw]:
    """The documents of spaCy's DocBin; `spans` is None if nobody annotated a document."""
    try:
        from spacy.tokens import DocBin
        from spacy.vocab import Vocab
    except ModuleNotFoundError as error:
        raise WxbError(
            f"{file}: {error}; DocBin needs spaCy: install it with"
            " `pip install --editable '.[benchmarks]'`"
        ) from None
    try:
        documents = list(DocBin().from_bytes(file.read_bytes()).get_docs(Vocab()))
    except (ValueError, KeyError, TypeError, zlib.error) as error:
        raise WxbError(f"{file} is not a DocBin: {error}; export it again") from None
    for index, doc in enumerate(documents, start=1):
        mentions = [{"start": e.start_char, "end": e.end_char, "label": e.label_} for e in doc.ents]
        is_annotated = doc.has_annotation("ENT_IOB")
        content = {"text": doc.text, "spans": mentions if is_annotated else None, "cats": doc.cats}
        yield Raw(f"document {index}", content)


def _check_unpacked(file: Path, metadata: pq.FileMetaData) -> None:
    """Raise WxbError if a small file would unpack to many bytes or rows."""
    groups = (metadata.row_group(index) for index in range(metadata.num_row_groups))
    unpacked = max(sum(group.total_byte_size for group in groups), metadata.num_rows)
    limit = MAX_EXPANSION * max(file.stat().st_size, MIB)
    if unpacked > limit:
        raise WxbError(
            f"{file}: unpacks to {unpacked:,} bytes or rows; expected at most {limit:,}"
            f" ({MAX_EXPANSION} times its size): write it again without the repeated values"
        )


def _parse(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:  # also for long numbers and deep nesting
        return RecordError("broken JSON", str(error))


def _unique(pairs: list[tuple[str, Any]]) -> Any:
    """The object of these keys and values; a RecordError if it, or an object in it, repeats one."""
    content = dict(pairs)
    if len(content) < len(pairs):
        key = next(key for index, (key, _) in enumerate(pairs) if key in dict(pairs[:index]))
        return RecordError("duplicate key", f"{key!r} stands twice in one object")
    inner = chain(*(value if isinstance(value, list) else [value] for value in content.values()))
    return next((value for value in inner if isinstance(value, RecordError)), content)


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
