"""Raw files to checked records.

A record is a text with spans `[start, end)` in code points and a type; the names of its fields are
mapped in params.yaml. A file that cannot be read at all is a `WxbError`; a record that cannot be
used is a `Reject` with its reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from wxb.corpora import formats
from wxb.corpora.formats import Raw
from wxb.corpora.layout import by_split, data_files
from wxb.corpora.records import Record, RecordError, Reject
from wxb.params.corpora import Corpus
from wxb.tasks.ner import conll
from wxb.tasks.ner.repair import by_value
from wxb.tasks.ner.spans import Span


def read(folder: Path, corpus: Corpus) -> Iterator[Record | Reject]:
    """The records of a raw folder, checked one by one, in the order of paths.

    Of splits that files make the test sets come first, the training split last. Raises WxbError for
    a file that is empty, not UTF-8 or not of its format, and where files and splits do not fit.
    """
    splits = by_split(data_files(folder, corpus), folder, corpus.split)
    seen: set[str] = set()
    # The test records first: of several with one id the first keeps it.
    for split in [*corpus.split.tests, "valid", "train", None]:
        for file in splits.get(split, []):
            path = file.relative_to(folder).as_posix()
            for raw in _raw_records(file, corpus):
                item = _checked(raw, corpus, path, split, seen)
                if isinstance(item, Record):
                    seen.add(item.id)
                yield item


def _raw_records(file: Path, corpus: Corpus) -> Iterator[Raw]:
    if corpus.conll:
        return conll.raw_records(file, corpus.conll)
    return formats.raw_records(file, corpus.fields)


def _checked(
    raw: Raw, corpus: Corpus, path: str, split: str | None, seen: set[str]
) -> Record | Reject:
    content = raw.content
    # File names alone may repeat in the folders of a corpus, and origins serve as ids.
    origin = f"{path}:{raw.place}"
    try:
        if isinstance(content, RecordError):
            raise content
        record = _record(content, corpus, origin)
        record = replace(record, split=split, mended=raw.mended + record.mended)
        if raw.document is not None:
            record = replace(record, group=f"{path}:{raw.document}")
        if record.id not in seen:
            return record
        # Numbers often start again in each file of a published corpus; its test records must stay.
        if not corpus.split.patterns or origin in seen:
            raise RecordError("duplicate id", f"{record.id!r} stood earlier")
        return replace(record, id=origin, mended=(*record.mended, "repeated id"))
    except RecordError as why:
        known = content.get(corpus.fields.id) if isinstance(content, Mapping) else None
        return Reject(origin, why.reason, why.detail, None if known is None else str(known))


def _record(raw: Any, corpus: Corpus, origin: str) -> Record:
    fields = corpus.fields
    if not isinstance(raw, Mapping):
        raise RecordError("not a record", f"found a JSON {type(raw).__name__}, expected an object")
    text = _required(raw, fields.text)
    if not isinstance(text, str):
        raise RecordError("wrong type", f"{fields.text!r} is {type(text).__name__}, expected text")
    if not text.strip():
        raise RecordError("blank text", f"{fields.text!r} has no visible character")
    if "\0" in text:
        raise RecordError("NUL character", f"at offset {text.index(chr(0))}")
    if len(text) > corpus.max_characters:
        raise RecordError("too long", f"{len(text)} characters, at most {corpus.max_characters}")
    raw_spans = _required(raw, fields.spans)
    group = text if corpus.split.by is None else str(_required(raw, corpus.split.by))
    language = raw.get(fields.language) if fields.language else None
    id_ = raw.get(fields.id) if fields.id else None
    spans, mended = (None, ()) if raw_spans is None else _spans(raw_spans, text, corpus)
    record = Record(
        id=origin if id_ is None else str(id_),
        text=text,
        spans=spans,
        language=None if language is None else str(language),
        group=group,
        values=tuple(str(_required(raw, field)) for field, _ in corpus.split.held_out.values()),
        mended=mended,
    )
    _check_encodable(record)
    return record


def _check_encodable(record: Record) -> None:
    types = [span.type for span in record.spans or ()]
    try:
        parts = [record.id, record.text, record.language or "", record.group, *record.values]
        "\n".join([*parts, *types]).encode()
    except UnicodeEncodeError as error:
        found = error.object[error.start]
        raise RecordError("lone surrogate", f"{found!a} cannot be written as UTF-8") from None


def _required(raw: Mapping[str, Any], field: str) -> Any:
    if field not in raw:
        raise RecordError("missing field", f"found {', '.join(map(repr, raw))}; expected {field!r}")
    return raw[field]


def _spans(raw_spans: Any, text: str, corpus: Corpus) -> tuple[tuple[Span, ...], tuple[str, ...]]:
    """The spans of one record, checked against its text, renamed, trimmed and sorted; mendings."""
    fields = corpus.fields
    if not isinstance(raw_spans, list):
        raise RecordError(
            "wrong type", f"{fields.spans!r} is {type(raw_spans).__name__}, not a list"
        )
    for raw in raw_spans:
        if not isinstance(raw, Mapping):
            raise RecordError("wrong type", f"a span is {type(raw).__name__}, expected an object")
    stretches = [(_offset(raw, fields.start), _offset(raw, fields.end)) for raw in raw_spans]
    repaired = 0
    if corpus.repair == "by-value":
        values = [raw.get(fields.value) for raw in raw_spans]
        stretches, repaired = by_value(text, stretches, values)
    spans = []
    for raw, (start, end) in zip(raw_spans, stretches, strict=True):
        span = _span(raw, start, end, text, corpus)
        if span is not None:
            spans.append(span)
    spans.sort()
    for left, right in pairwise(spans):
        if right.start < left.end:
            raise RecordError("overlapping spans", f"{tuple(left)} and {tuple(right)}")
    return tuple(spans), ("span found by value",) * repaired


def _span(raw: Mapping[str, Any], start: int, end: int, text: str, corpus: Corpus) -> Span | None:
    """One span; None where its type is to be ignored."""
    fields = corpus.fields
    if end <= start:
        raise RecordError("reversed offsets", f"start {start}, end {end}")
    if start < 0 or end > len(text):
        raise RecordError("offsets out of range", f"{start}-{end} of {len(text)} characters")
    mention = text[start:end]
    if fields.value is not None and raw.get(fields.value) != mention:
        raise RecordError(
            "value differs", f"{start}-{end} is {mention!r}, not {raw.get(fields.value)!r}"
        )
    name = _required(raw, fields.type)
    if not isinstance(name, str | int) or name == "":
        raise RecordError("wrong type", f"{fields.type!r} is {name!r}, expected a name")
    if (type_ := corpus.labels.get(str(name), str(name))) is None:
        return None
    if not mention.strip():
        raise RecordError("blank span", f"{start}-{end} is {mention!r}")
    # A mention has no outer white space; tokenizers could not keep it either.
    start += len(mention) - len(mention.lstrip())
    return Span(start, start + len(mention.strip()), type_)


def _offset(raw: Mapping[str, Any], field: str) -> int:
    value = _required(raw, field)
    if not isinstance(value, int) or isinstance(value, bool):
        raise RecordError("wrong type", f"{field!r} is {value!r}, expected a whole number")
    return value
