"""Raw files to checked records.

The names of a record's fields are mapped in params.yaml; how its gold is read, the task says. A
file that cannot be read at all is a `WxbError`; a record that cannot be used is a `Reject` with its
reason.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from wxb.core.params.corpora import Corpus
from wxb.core.progress import tracked
from wxb.corpora import formats
from wxb.corpora.formats import Raw
from wxb.corpora.layout import by_split, data_files, refuse_page
from wxb.corpora.records import Record, RecordError, Reject, encodable, required


class Reading(ABC):
    """How the records of a task are read: what only the stage preprocess needs of it.

    A task defines `gold` and `describe`. The defaults are for texts in files with fields.
    """

    def raw_records(self, file: Path, corpus: Any) -> Iterator[Raw]:
        """The records of a raw file, not yet checked; its suffix names its format."""
        return formats.raw_records(file)

    @abstractmethod
    def gold(self, raw: Mapping[str, Any], text: str, corpus: Any) -> tuple[Any, tuple[str, ...]]:
        """The gold of a raw record, None if it is unlabelled, and what was repaired in it.

        Raises RecordError if the record cannot be used.
        """

    def prepared(
        self,
        items: Iterable[Record | Reject],
        corpus: Any,
        *,
        folder: Path,
        out: Path,
        home: Path,
        label: str,
    ) -> Iterator[Record | Reject]:
        """The records with their inputs made ready, of all that was read in `folder`.

        Inputs that are files may be written to `out`, which will lie at `home`. What cannot be used
        becomes a Reject. Texts are ready as they are read; shows progress.
        """
        return tracked(items, label)

    def wording(self, record: Record) -> str:
        """The text that near duplicates share; empty if the record has none.

        It is in lower case, each number 0, one space apart; empty without a letter.
        """
        if not any(map(str.isalpha, record.input)):
            return ""
        return " ".join(re.sub(r"\d+", "0", record.input).casefold().split())

    def labels(self, records: Sequence[Record]) -> list[str]:
        """The labels that occur in records, sorted: types, classes; empty by default."""
        return []

    @abstractmethod
    def describe(self, records: Sequence[Record]) -> dict[str, Any]:
        """Counts of the gold of labelled records, for profile.json."""

    def augmented(
        self, records: Sequence[Record], corpus: Any, *, known: set[str], seed: int
    ) -> list[Record] | None:
        """More training records made of these; None if the corpus wants none."""
        return None


def read(folder: Path, corpus: Corpus, task: Reading) -> Iterator[Record | Reject]:
    """The records of a raw folder, checked one by one, in the order of paths.

    Of splits that files make the test sets come first, the training split last. Raises WxbError for
    a file that is empty, not of its format or in none of its encodings, and where files and splits
    do not fit.
    """
    splits = by_split(data_files(folder, corpus), folder, corpus.split)
    seen: set[str] = set()
    # The test records first: of several with one id the first keeps it.
    for split in [*corpus.split.tests, "valid", "train", None]:
        for file in splits.get(split, []):
            refuse_page(file)
            path = file.relative_to(folder).as_posix()
            for raw in task.raw_records(file, corpus):
                item = _checked(raw, corpus, task, path, split, seen)
                if isinstance(item, Record):
                    seen.add(item.id)
                yield item


def _checked(
    raw: Raw,
    corpus: Corpus,
    task: Reading,
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
        record = _record(content, corpus, task, origin)
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


def _record(raw: Any, corpus: Corpus, task: Reading, origin: str) -> Record:
    fields = corpus.fields
    if not isinstance(raw, Mapping):
        raise RecordError("not a record", f"found a JSON {type(raw).__name__}, expected an object")
    text = required(raw, fields.input)
    if not isinstance(text, str):
        raise RecordError("wrong type", f"{fields.input!r} is {type(text).__name__}, expected text")
    if not text.strip():
        raise RecordError("blank text", f"{fields.input!r} has no visible character")
    if "\0" in text:
        raise RecordError("NUL character", f"at offset {text.index(chr(0))}")
    if len(text) > corpus.max_characters:
        raise RecordError("too long", f"{len(text)} characters, at most {corpus.max_characters}")
    group = text if corpus.split.by is None else str(required(raw, corpus.split.by))
    language = raw.get(fields.language) if fields.language else None
    id_ = raw.get(fields.id) if fields.id else None
    gold, repaired = task.gold(raw, text, corpus)
    record = Record(
        id=origin if id_ is None else str(id_),
        input=text,
        gold=gold,
        language=None if language is None else str(language),
        group=group,
        values=tuple(str(required(raw, field)) for field, _ in corpus.split.held_out.values()),
        repaired=repaired,
    )
    encodable(record.id, record.input, record.language or "", record.group, *record.values)
    return record
