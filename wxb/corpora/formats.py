"""Read unchecked records from JSON, JSONL, CSV, Parquet, Arrow and DocBin files."""

from __future__ import annotations

import ast
import csv
import io
import json
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from wxb.core.errors import WxbError
from wxb.core.files import read_json
from wxb.corpora.adapters import adapt
from wxb.corpora.layout import (
    DELIMITERS,
    FEATURES,
    LEGACY,
    TABLES,
    decode,
    decode_lines,
    decode_table,
)
from wxb.corpora.records import RecordError

BATCH = 1000  # rows of Parquet: a repeated value is stored once, and unpacked for each row


Names = Mapping[str, Sequence[str]]  # of classes that are stored as numbers, by field


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
    Records of annotation tools are converted by `adapt`; numbers of classes become their names.

    Raises WxbError if the file is empty, not in its format, or in an unsupported encoding: JSON
    must be UTF-8, CSV may also be in one of `layout.LEGACY`. DocBin needs spaCy.
    """
    names = _names_of(file)
    for raw in _unconverted(file, parsed, columns):
        try:
            yield raw._replace(content=adapt(_with_names(raw.content, names)))
        except RecordError as error:
            yield raw._replace(content=error)


def _unconverted(file: Path, parsed: str | None, columns: Sequence[str] | None) -> Iterator[Raw]:
    """The records of a file as they are in it."""
    if columns:
        return _without_header(file, columns)
    match file.suffix.lower():
        case ".jsonl":
            return _jsonl(file)
        case ".csv" | ".tsv":
            return _csv(file, parsed)
        case ".parquet":
            return _batches(file, lambda: pq.ParquetFile(file).iter_batches(BATCH))
        case ".arrow":
            return _batches(file, lambda: _open_arrow(file))
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
    if isinstance(records, Mapping) and records:
        is_by_id = len(records) > 1 and all(isinstance(r, Mapping) for r in records.values())
        # An object by ids, or a file for each document.
        records = [{"id": i, **r} for i, r in records.items()] if is_by_id else [records]
    if not isinstance(records, list):
        raise WxbError(f"{file}: found a JSON {type(records).__name__}; expected a list of records")
    for index, content in enumerate(records, start=1):
        yield Raw(f"record {index}", content)


def _jsonl(file: Path) -> Iterator[Raw]:
    for index, line in enumerate(decode_lines(file), start=1):
        if line.strip():
            yield Raw(f"line {index}", _parse(line))


def _csv(file: Path, parsed: str | None) -> Iterator[Raw]:
    text, legacy = decode_table(file)
    repaired = (f"read as {legacy}",) if legacy else ()
    csv.field_size_limit(2**31 - 1)
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
    """The rows of a CSV file, or the lines with tabs of another file."""
    text, legacy = decode_table(file, LEGACY if file.suffix.lower() in TABLES else ())
    if file.suffix.lower() == ".csv":
        csv.field_size_limit(2**31 - 1)
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text))
        lines = ((rows.line_num, row) for row in rows if row)
    else:
        lines = (
            (number, line.rstrip("\r").split("\t"))
            for number, line in enumerate(text.split("\n"), start=1)
            if line.strip()
        )
    for number, cells in lines:
        content: Any = dict(zip(columns, cells, strict=False))
        if len(cells) < len(columns):
            detail = f"found {len(cells)} cells, expected {len(columns)}"
            content = RecordError("broken line", detail)
        yield Raw(f"line {number}", content, (f"read as {legacy}",) if legacy else ())


def _batches(file: Path, batches: Callable[[], Iterable[pa.RecordBatch]]) -> Iterator[Raw]:
    """The rows of batches. Raises WxbError if the file is damaged."""
    try:
        rows = (row for batch in batches() for row in batch.to_pylist())
        for index, content in enumerate(rows, start=1):
            yield Raw(f"row {index}", content)
    except (OSError, ValueError, pa.ArrowException) as error:
        message = " ".join(str(error).split())
        raise WxbError(f"{file} cannot be read: {message}; fetch the file again") from None


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


def _parse(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:  # also for long numbers and deep nesting
        return RecordError("broken JSON", str(error))


def _unique(pairs: list[tuple[str, Any]]) -> Any:
    """The object of these keys and values; a RecordError if it, or an object in it, repeats one."""
    content = dict(pairs)
    if len(content) < len(pairs):
        key = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
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
            try:  # a Python literal, as pandas writes lists; runs no code
                with warnings.catch_warnings(action="ignore"):  # of invalid escapes in strings
                    row[parsed] = ast.literal_eval(cell)
            except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
                detail = f"neither JSON ({row[parsed].detail}) nor a Python literal ({error})"
                return RecordError("broken cell", detail)
    return row


def _names_of(file: Path) -> Names:
    """The names for the records of a file, by field; empty without.

    Raises WxbError if a file of features is not JSON.
    """
    schema = None
    with suppress(OSError, ValueError, pa.ArrowException):  # the reader raises the error
        match file.suffix.lower():
            case ".parquet":
                schema = pq.read_schema(file)
            case ".arrow":
                schema = _open_arrow(file).schema
    metadata = (schema.metadata or {}).get(b"huggingface") if schema else None
    if metadata:
        return _names_by_field(json.loads(metadata))
    for folder in (file.parent, file.parent.parent):
        for path in (folder / name for name in FEATURES):
            if path.is_file():
                try:
                    return _names_by_field(read_json(path))
                except ValueError as error:
                    raise WxbError(f"{path}: expected JSON with `features`; {error}") from None
    return {}


def _open_arrow(file: Path) -> pa.RecordBatchReader:
    """A reader of the batches of an Arrow file, in the format of streams or of files."""
    try:
        return pa.ipc.open_stream(pa.memory_map(str(file)))
    except pa.ArrowInvalid:
        table = pa.ipc.open_file(pa.memory_map(str(file))).read_all()
        return table.to_reader()


def _with_names(content: Any, names: Names) -> Any:
    """A record with names instead of numbers; -1, which means no class, becomes None."""
    if not names or not isinstance(content, Mapping):
        return content
    return {key: _named(value, names.get(key, ())) for key, value in content.items()}


def _named(value: Any, names: Sequence[str]) -> Any:
    if isinstance(value, list):
        return [_named(item, names) for item in value]
    if names and type(value) is int and -1 <= value < len(names):
        return None if value == -1 else names[value]
    return value


def _names_by_field(content: Any) -> Names:
    """The names of each field in the features of a data set, or of its first configuration."""
    while isinstance(content, Mapping) and content:
        features = content.get("features") or content
        by_field = {field: _class_names(feature) for field, feature in features.items()}
        if any(by_field.values()):
            return by_field
        content = content.get("info", next(iter(content.values())))
    return {}


def _class_names(feature: Any) -> Sequence[str]:
    """The names of a class, or of a list of classes; empty for other features."""
    while isinstance(feature, Mapping):
        feature = feature["names"] if "names" in feature else feature.get("feature")
    is_names = isinstance(feature, list) and all(isinstance(name, str) for name in feature)
    return feature if is_names else ()
