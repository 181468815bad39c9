"""Raw files to checked records.

The names of a record's fields are mapped in params.yaml; what its gold is, the task says. A file
that cannot be read at all is a `WxbError`; a record that cannot be used is a `Reject` with its
reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from wxb.corpora.formats import Raw
from wxb.corpora.labelling import Labelling
from wxb.corpora.layout import by_split, data_files
from wxb.corpora.records import Record, RecordError, Reject, encodable, required
from wxb.params.corpora import Corpus


def read(folder: Path, corpus: Corpus, labelling: Labelling) -> Iterator[Record | Reject]:
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
            for raw in labelling.raw_records(file, corpus):
                item = _checked(raw, corpus, labelling, path, split, seen)
                if isinstance(item, Record):
                    seen.add(item.id)
                yield item


def _checked(
    raw: Raw,
    corpus: Corpus,
    labelling: Labelling,
    path: str,
    split: str | None,
    seen: set[str],
) -> Record | Reject:
    content = raw.content
    # File names alone may repeat in the folders of a corpus, and origins serve as ids.
    origin = f"{path}:{raw.place}"
    try:
        if isinstance(content, RecordError):
            raise content
        record = _record(content, corpus, labelling, origin)
        record = replace(record, split=split, repaired=raw.repaired + record.repaired)
        if raw.document is not None:
            record = replace(record, group=f"{path}:{raw.document}")
        if record.id not in seen:
            return record
        # Numbers often start again in each file of a published corpus; its test records must stay.
        if not corpus.split.patterns or origin in seen:
            raise RecordError("duplicate id", f"{record.id!r} stood earlier")
        return replace(record, id=origin, repaired=(*record.repaired, "repeated id"))
    except RecordError as why:
        known = content.get(corpus.fields.id) if isinstance(content, Mapping) else None
        return Reject(origin, why.reason, why.detail, None if known is None else str(known))


def _record(raw: Any, corpus: Corpus, labelling: Labelling, origin: str) -> Record:
    fields = corpus.fields
    if not isinstance(raw, Mapping):
        raise RecordError("not a record", f"found a JSON {type(raw).__name__}, expected an object")
    text = required(raw, fields.text)
    if not isinstance(text, str):
        raise RecordError("wrong type", f"{fields.text!r} is {type(text).__name__}, expected text")
    if not text.strip():
        raise RecordError("blank text", f"{fields.text!r} has no visible character")
    if "\0" in text:
        raise RecordError("NUL character", f"at offset {text.index(chr(0))}")
    if len(text) > corpus.max_characters:
        raise RecordError("too long", f"{len(text)} characters, at most {corpus.max_characters}")
    group = text if corpus.split.by is None else str(required(raw, corpus.split.by))
    language = raw.get(fields.language) if fields.language else None
    id_ = raw.get(fields.id) if fields.id else None
    gold, repaired = labelling.gold(raw, text, corpus)
    record = Record(
        id=origin if id_ is None else str(id_),
        text=text,
        gold=gold,
        language=None if language is None else str(language),
        group=group,
        values=tuple(str(required(raw, field)) for field, _ in corpus.split.held_out.values()),
        repaired=repaired,
    )
    encodable(record.id, record.text, record.language or "", record.group, *record.values)
    return record
