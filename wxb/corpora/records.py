"""Records with character spans in a JSON, JSONL or CSV file.

A record is a text with spans `[start, end)` in code points and a type; the names of its fields are
mapped in params.yaml. A file that cannot be read at all is a `WxbError`; a record that cannot be
used is a `Reject` with its reason.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from wxb.errors import WxbError
from wxb.params import Corpus, Fields
from wxb.spans import Span

SUFFIXES = (".json", ".jsonl", ".csv")


@dataclass(frozen=True)
class Record:
    """A text and its gold spans, sorted and disjoint; `spans` is None where nobody labelled it."""

    id: str
    text: str
    spans: tuple[Span, ...] | None
    language: str | None
    group: str


class Reject(NamedTuple):
    """A record that is dropped: where it stood or its id, why, and what it held."""

    origin: str
    reason: str
    detail: str
    id: str | None


class _RecordError(Exception):
    """Why a record is dropped: a reason to count by, and the particulars."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason, self.detail = reason, detail


def data_files(folder: Path) -> list[Path]:
    """The files of a raw folder that hold records, sorted by path.

    Raises WxbError when there is none.
    """
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.suffix.lower() in SUFFIXES)
    if not files:
        found = ", ".join(sorted(p.name for p in folder.rglob("*"))) or "nothing"
        raise WxbError(f"{folder}: found {found}; expected a file ending in {', '.join(SUFFIXES)}")
    return files


def read(files: Sequence[Path], corpus: Corpus) -> Iterator[Record | Reject]:
    """The records of some files, checked one by one, in order.

    Raises WxbError for a file that is empty, not UTF-8 or not of its format.
    """
    seen: set[str] = set()
    # File names alone may repeat in the folders of a corpus, and origins serve as ids.
    root = os.path.commonpath([file.parent for file in files])
    for file in files:
        for place, raw in _raw_records(file, corpus.fields):
            origin = f"{file.relative_to(root).as_posix()}:{place}"
            try:
                if isinstance(raw, _RecordError):
                    raise raw
                record = _record(raw, corpus, origin)
                if record.id in seen:
                    raise _RecordError("duplicate id", f"{record.id!r} stood earlier")
                seen.add(record.id)
                yield record
            except _RecordError as why:
                known = raw.get(corpus.fields.id) if isinstance(raw, Mapping) else None
                yield Reject(origin, why.reason, why.detail, None if known is None else str(known))


def _raw_records(file: Path, fields: Fields) -> Iterator[tuple[str, Any]]:
    """(place in the file, decoded record or why it is unusable)."""
    text = _decode(file)
    match file.suffix.lower():
        case ".jsonl":
            for number, line in enumerate(text.split("\n"), start=1):
                if line.strip():
                    yield f"line {number}", _parse(line)
        case ".csv":
            csv.field_size_limit(2**31 - 1)
            rows = csv.DictReader(io.StringIO(text, newline=""), strict=True)
            try:
                for row in rows:
                    yield f"line {rows.line_num}", _unpack(row, fields.spans)
            except csv.Error as error:
                raise WxbError(f"{file}: line {rows.reader.line_num} is not CSV: {error}") from None
        case _:
            records = _parse(text)
            if isinstance(records, _RecordError):
                raise WxbError(
                    f"{file}: {records.reason}: {records.detail};"
                    " expected a list of records (one record a line is .jsonl)"
                )
            if not isinstance(records, list):
                raise WxbError(
                    f"{file}: found a JSON {type(records).__name__}; expected a list of records"
                )
            for number, raw in enumerate(records, start=1):
                yield f"record {number}", raw


def _decode(file: Path) -> str:
    """The text of a UTF-8 file, with or without a byte order mark."""
    data = file.read_bytes()
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in data[:2]:
        raise WxbError(
            f"{file}: found UTF-16; expected UTF-8: convert it with"
            f" `iconv -f UTF-16 -t UTF-8 {file.name} > new{file.suffix}`"
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise WxbError(
            f"{file}: found byte {data[error.start]:#04x} at offset {error.start};"
            " expected UTF-8: convert the file with iconv"
        ) from None
    if not text.strip():
        raise WxbError(f"{file}: found an empty file; expected records")
    return text


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:  # a number or a nesting may be too long, too
        return _RecordError("broken JSON", str(error))


def _unpack(row: dict[str | None, Any], spans: str) -> Any:
    """A CSV row whose cell of spans is parsed; an empty one says that nobody labelled the text."""
    if None in row or None in row.values():
        return _RecordError("broken CSV", "another number of cells than the header has")
    if spans in row:
        row[spans] = _parse(row[spans] or "null")
        if isinstance(row[spans], _RecordError):
            return row[spans]
    return row


def _record(raw: Any, corpus: Corpus, origin: str) -> Record:
    fields = corpus.fields
    if not isinstance(raw, Mapping):
        raise _RecordError("not a record", f"found a JSON {type(raw).__name__}, expected an object")
    text = _required(raw, fields.text)
    if not isinstance(text, str):
        raise _RecordError("wrong type", f"{fields.text!r} is {type(text).__name__}, expected text")
    if not text.strip():
        raise _RecordError("blank text", f"{fields.text!r} has no visible character")
    if "\0" in text:
        raise _RecordError("NUL character", f"at offset {text.index(chr(0))}")
    if len(text) > corpus.max_characters:
        raise _RecordError("too long", f"{len(text)} characters, at most {corpus.max_characters}")
    raw_spans = _required(raw, fields.spans)
    group = text if corpus.split.by is None else str(_required(raw, corpus.split.by))
    language = raw.get(fields.language) if fields.language else None
    id_ = raw.get(fields.id) if fields.id else None
    record = Record(
        id=origin if id_ is None else str(id_),
        text=text,
        spans=None if raw_spans is None else _spans(raw_spans, text, corpus.labels, fields),
        language=None if language is None else str(language),
        group=group,
    )
    _check_encodable(record)
    return record


def _check_encodable(record: Record) -> None:
    types = [span.type for span in record.spans or ()]
    try:
        "\n".join([record.id, record.text, record.language or "", record.group, *types]).encode()
    except UnicodeEncodeError as error:
        found = error.object[error.start]
        raise _RecordError("lone surrogate", f"{found!a} cannot be written as UTF-8") from None


def _required(raw: Mapping[str, Any], field: str) -> Any:
    if field not in raw:
        raise _RecordError(
            "missing field", f"found {', '.join(map(repr, raw))}; expected {field!r}"
        )
    return raw[field]


def _spans(
    raw_spans: Any, text: str, labels: Mapping[str, str | None], fields: Fields
) -> tuple[Span, ...]:
    """The spans of one record, checked against its text, renamed, trimmed and sorted."""
    if not isinstance(raw_spans, list):
        raise _RecordError(
            "wrong type", f"{fields.spans!r} is {type(raw_spans).__name__}, not a list"
        )
    spans = []
    for raw in raw_spans:
        if not isinstance(raw, Mapping):
            raise _RecordError("wrong type", f"a span is {type(raw).__name__}, expected an object")
        start, end = _offset(raw, fields.start), _offset(raw, fields.end)
        if end <= start:
            raise _RecordError("reversed offsets", f"start {start}, end {end}")
        if start < 0 or end > len(text):
            raise _RecordError("offsets out of range", f"{start}-{end} of {len(text)} characters")
        mention = text[start:end]
        if fields.value is not None and raw.get(fields.value) != mention:
            raise _RecordError(
                "value differs", f"{start}-{end} is {mention!r}, not {raw.get(fields.value)!r}"
            )
        name = _required(raw, fields.type)
        if not isinstance(name, str | int) or name == "":
            raise _RecordError("wrong type", f"{fields.type!r} is {name!r}, expected a name")
        if (type_ := labels.get(str(name), str(name))) is None:
            continue
        if not mention.strip():
            raise _RecordError("blank span", f"{start}-{end} is {mention!r}")
        # A mention has no outer white space; tokenizers could not keep it either.
        start += len(mention) - len(mention.lstrip())
        spans.append(Span(start, start + len(mention.strip()), type_))
    spans.sort()
    for left, right in pairwise(spans):
        if right.start < left.end:
            raise _RecordError("overlapping spans", f"{tuple(left)} and {tuple(right)}")
    return tuple(spans)


def _offset(raw: Mapping[str, Any], field: str) -> int:
    value = _required(raw, field)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _RecordError("wrong type", f"{field!r} is {value!r}, expected a whole number")
    return value
