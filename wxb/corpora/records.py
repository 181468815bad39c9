"""What a record is, and what became of one that cannot be used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from wxb.tasks.ner.spans import Span


@dataclass(frozen=True)
class Record:
    """A text and its gold spans, sorted and disjoint; `spans` is None where nobody labelled it.

    Records of one `group` stay together where records are divided or resampled. The last three
    fields matter until the corpus is divided, and are not kept on disk: the split that the record
    was published in, its values of the fields by which further test sets are held out, and one
    entry for each thing in it that the reader put right.
    """

    id: str
    text: str
    spans: tuple[Span, ...] | None
    language: str | None
    group: str
    split: str | None = None
    values: tuple[str, ...] = ()
    mended: tuple[str, ...] = ()


class Reject(NamedTuple):
    """A record that is dropped: where it stood or its id, why, and what it held."""

    origin: str
    reason: str
    detail: str
    id: str | None


class RecordError(Exception):
    """Why a record is dropped: a reason to count by, and the particulars."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason, self.detail = reason, detail
