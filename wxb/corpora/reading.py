"""Read raw files as checked records.

params.yaml maps the names of fields; a task defines how gold is read. A file that cannot be read
raises WxbError. A record that cannot be used becomes a Reject.
"""

import re
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from wxb.core.errors import WxbError, counted
from wxb.core.params.corpora import Corpus, Split
from wxb.core.progress import track
from wxb.corpora import formats
from wxb.corpora.adapters import READ
from wxb.corpora.formats import Raw
from wxb.corpora.layout import data_files, files_by_split, refuse_unsupported, unread_files
from wxb.corpora.records import (
    Record,
    RecordError,
    Reject,
    check_characters,
    required_field,
    required_text,
)

Items = Iterable[Record | Reject]  # of a raw folder, in the order of its paths


class Reading(ABC):
    """How the stage `preprocess` reads the records of a task.

    A task defines `gold_and_repairs`. The defaults are for texts in files with fields.
    """

    # Key of gold whose values group the records of a test set, such as "speaker"; None: the groups
    # by which the corpus is divided. Further test sets are grouped by the values they hold out.
    TEST_GROUP: ClassVar[str | None] = None
    NAMED_FILES: ClassVar[tuple[str, ...]] = ()  # suffixes of files that records name

    def raw_records(self, file: Path, corpus: Any) -> Iterator[Raw]:
        """Yield each unchecked record of a raw file with its place, or why it cannot be read."""
        return formats.raw_records(file, annotator=corpus.annotator)

    def input_of(self, raw: Mapping[str, Any], corpus: Any) -> str:
        """The input of a raw record, labelled or not. Raises RecordError if it has none."""
        return required_text(raw, corpus.fields.input)

    @abstractmethod
    def gold_and_repairs(
        self, raw: Mapping[str, Any], text: str, corpus: Any
    ) -> tuple[Any, tuple[str, ...]]:
        """The gold of a raw record (None if unlabelled), and the names of repairs.

        Raises RecordError if the record cannot be used.
        """

    def prepare_inputs(
        self, items: Items, corpus: Any, *, folder: Path, out: Path, home: Path, caption: str
    ) -> Iterator[Record | Reject]:
        """Yield the records with prepared inputs, and the rejects; prints progress.

        By default items are unchanged. Inputs that are files, such as audio, are read from
        `folder` and written to `out`, but named in `home`; `preprocess` moves those of each split.
        """
        return track(items, caption)

    def preview(self, record: Record) -> str:
        """The input and the gold of a record, for the report of `wxb new corpus`."""
        return f"{record.input} -> {record.gold}"

    def wording(self, record: Record) -> str:
        """The text that near duplicates share: lower case, numbers as 0, single spaces.

        Empty if the input has no letter.
        """
        if not any(map(str.isalpha, record.input)):
            return ""
        return " ".join(re.sub(r"\d+", "0", record.input).casefold().split())

    def leakage_text(self, record: Record) -> str:
        """The text that must not be in training, "" if not comparable; by default the wording."""
        return self.wording(record)

    def sentence_text(self, record: Record) -> str:
        """The text whose sentences are searched in training; by default its leakage text."""
        return self.leakage_text(record)

    def labels(self, records: Sequence[Record]) -> list[str]:
        """The labels of records, sorted: by default all gold that is text."""
        return sorted({record.gold for record in records if isinstance(record.gold, str)})

    def check_labels(self, splits: Mapping[str, Sequence[Record]], split: Split) -> None:
        """Raise WxbError if train and a split of files both have labels, but none in common."""
        known = self.labels(splits["train"])
        for name in split.file_patterns:
            if known and (labels := self.labels(splits[name])) and not {*known} & {*labels}:
                shown = f"{', '.join(labels[:5])}, which train ({', '.join(known[:5])}) lacks"
                raise WxbError(
                    f"{name}: found the labels {shown}; map them by `labels` of the corpus, or"
                    " leave out files without labels"
                )

    def statistics(self, records: Sequence[Record]) -> dict[str, Any]:
        """Counts of the gold of labelled records, for profile.json; none by default."""
        return {}


class Contents(NamedTuple):
    """The records of a corpus, those rejected, and the fields and files that are not read."""

    records: list[Record]
    rejects: list[Reject]
    unread_fields: dict[str, int]  # records by field
    unread_files: Sequence[str] = ()


def summarize_rejects(rejects: Sequence[Reject], corpus: Corpus) -> str:
    """The number of rejects (at least one), the commonest reason, an example, and what to do."""
    ((reason, count),) = Counter(reject.reason for reject in rejects).most_common(1)
    example = next(reject for reject in rejects if reject.reason == reason)
    return (
        f"{counted(len(rejects), 'records')} rejected, {count} like this one"
        f" ({example.origin}) for {reason}: {example.detail}; {corpus.advice(reason)}"
    )


def alphabetical_counts(values: Iterable[str]) -> dict[str, int]:
    """The number of occurrences of each value, in alphabetical order."""
    return dict(sorted(Counter(values).items()))


def length_quantiles(lengths: Sequence[int]) -> dict[str, int]:
    """The `median`, `p95` (95th percentile) and `longest` of lengths; 0 if there are none."""
    shares = (("median", 0.5), ("p95", 0.95), ("longest", 1.0))
    return {name: int(np.quantile(lengths or [0], q, method="nearest")) for name, q in shares}


def read_prepared(
    folder: Path, corpus: Corpus, task: Reading, *, out: Path, home: Path, caption: str
) -> Contents:
    """Read a raw folder by `read_folder`, and prepare its records by `Reading.prepare_inputs`.

    If the corpus has `languages`, rejects records in others or in none. `unread_fields` has the
    fields that the corpus does not read, except those that few records have.
    """
    records: list[Record] = []
    rejects: list[Reject] = []
    fields = Counter[str]()
    read = read_folder(folder, corpus, task, fields)
    items = task.prepare_inputs(read, corpus, folder=folder, out=out, home=home, caption=caption)
    for item in items:
        if isinstance(item, Reject):
            rejects.append(item)
        elif corpus.languages and item.language not in corpus.languages:
            detail = f"{item.language!r} is not among {corpus.languages}"
            rejects.append(Reject(item.id, "other language", detail, item.id))
        else:
            records.append(item)
    known = {*corpus.fields.model_dump().values(), corpus.split.by, *READ}
    known |= {field for field, _ in corpus.split.held_out_fields.values()}
    least = max(fields.values(), default=0) / 2
    unread = {str(n): count for n, count in fields.items() if n not in known and count > least}
    named = [path for path in folder.rglob("*") if path.suffix.lower() in task.NAMED_FILES]
    files = unread_files(folder, [*data_files(folder, corpus), *named])
    return Contents(records, rejects, unread, files)


def read_folder(
    folder: Path, corpus: Corpus, task: Reading, fields: Counter[str] | None = None
) -> Iterator[Record | Reject]:
    """Yield the checked records and the rejects of a raw folder, in the order of paths.

    Adds the fields that have a value to `fields`, if given. If files define splits, test sets come
    first and training last, and repeated ids are replaced; else their records are rejected. Raises
    WxbError if a file cannot be read as its format, or if the files do not match the splits.
    """
    splits = files_by_split(data_files(folder, corpus), folder, corpus.split)
    seen_ids: set[str] = set()
    for split in [*corpus.split.test_sets, "valid", "train", None]:
        for file in splits.get(split, []):
            refuse_unsupported(file)
            path = file.relative_to(folder).as_posix()
            for raw in task.raw_records(file, corpus):
                if fields is not None and isinstance(raw.content, Mapping):
                    fields.update(k for k, v in raw.content.items() if v not in (None, "", [], {}))
                item = _record_or_reject(raw, corpus, task, path, split, seen_ids)
                if isinstance(item, Record):
                    seen_ids.add(item.id)
                yield item


def _record_or_reject(
    raw: Raw, corpus: Corpus, task: Reading, path: str, split: str | None, seen_ids: Set[str]
) -> Record | Reject:
    """A record, or a Reject. A document is the group of its records; see `read_folder` for ids."""
    content = raw.content
    origin = f"{path}:{raw.place}"  # unique, as it may become the id
    try:
        if isinstance(content, RecordError):
            raise content
        record = _record(content, corpus, task, origin)
        record = replace(record, split=split, repaired=raw.repaired + record.repaired)
        if raw.document is not None:
            record = replace(record, group=f"{path}:{raw.document}")
        if record.id not in seen_ids:
            return record
        # Ids often start again in each file of a published corpus, whose records must stay.
        if not corpus.split.file_patterns or origin in seen_ids:
            raise RecordError("duplicate id", f"{record.id!r} stood earlier")
        return replace(record, id=origin, repaired=(*record.repaired, "repeated id"))
    except RecordError as error:
        id_ = content.get(corpus.fields.id) if isinstance(content, Mapping) else None
        return Reject(origin, error.reason, error.detail, None if id_ is None else str(id_))


def _record(raw: Any, corpus: Corpus, task: Reading, origin: str) -> Record:
    """Check a record. Without an id it gets `origin`; without `split.by` its text is its group."""
    if not isinstance(raw, Mapping):
        raise RecordError("not a record", f"found a JSON {type(raw).__name__}, expected an object")
    fields = corpus.fields
    text = task.input_of(raw, corpus)
    if len(text) > corpus.max_characters:
        raise RecordError("too long", f"{len(text)} characters, at most {corpus.max_characters}")
    group = text if corpus.split.by is None else required_field(raw, corpus.split.by)
    if group in (None, ""):
        raise RecordError("blank group", f"{corpus.split.by!r} is {group!r}")
    language = raw.get(fields.language) if fields.language else None
    id_ = raw.get(fields.id) if fields.id else None
    gold, repaired = task.gold_and_repairs(raw, text, corpus)
    record = Record(
        id=origin if id_ in (None, "") else str(id_),
        input=text,
        gold=gold,
        language=None if language in (None, "") else sys.intern(str(language)),
        group=str(group),
        values=tuple(str(required_field(raw, f)) for f, _ in corpus.split.held_out_fields.values()),
        repaired=repaired,
    )
    check_characters(record.id, record.input, record.language or "", record.group, *record.values)
    return with_wording(record, task)


def with_wording(record: Record, task: Reading) -> Record:
    """The record with a digest of its wording, empty if blank; the text would take more memory."""
    text = task.wording(record)
    digest = blake2b(text.encode(), digest_size=16).digest() if text else b""
    return replace(record, wording=digest)
