"""What a task brings to its corpora: what gold is, and how it is read, kept and described.

Below are what those take whose gold needs nothing of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

if TYPE_CHECKING:
    from wxb.corpora.formats import Raw
    from wxb.corpora.records import Record


class Labelling(Protocol):
    """The module `record` of a task."""

    @property
    def GOLD(self) -> pa.DataType:  # noqa: N802
        """The type of gold in Parquet."""

    def raw_records(self, file: Path, corpus: Any) -> Iterator[Raw]:
        """The records of a raw file, not yet checked."""

    def gold(self, raw: Mapping[str, Any], text: str, corpus: Any) -> tuple[Any, tuple[str, ...]]:
        """The gold of a raw record, None where nobody labelled it, and what was repaired in it.

        Raises RecordError where it cannot be used.
        """

    def pack(self, gold: Any) -> Any:
        """Gold (not None) as Parquet takes it."""

    def unpack(self, value: Any) -> Any:
        """Gold (not None) from what Parquet gives."""

    def wording(self, record: Record) -> str:
        """What a record says but for what may differ between near duplicates; empty: nothing."""

    def labels(self, records: Sequence[Record]) -> list[str]:
        """The labels that occur in records, sorted: types, classes; empty where there are none."""

    def describe(self, records: Sequence[Record]) -> dict[str, Any]:
        """Counts of the gold of labelled records, for profile.json."""

    def augmented(
        self, records: Sequence[Record], corpus: Any, *, known: set[str], seed: int
    ) -> list[Record] | None:
        """More training records made of these; None where the corpus asks for none."""


def raw_records(file: Path, corpus: Any) -> Iterator[Raw]:
    """The records of a file, whose suffix tells its format."""
    # Only what reads raw files depends on how they are read.
    from wxb.corpora import formats

    return formats.raw_records(file)


def pack(gold: Any) -> Any:
    """Gold that Parquet takes as it is."""
    return gold


unpack = pack


def wording(record: Record) -> str:
    """What a text says: in lower case, each number 0, one space apart; empty without a letter."""
    if not any(map(str.isalpha, record.text)):
        return ""
    return " ".join(re.sub(r"\d+", "0", record.text).casefold().split())


def augmented(
    records: Sequence[Record], corpus: Any, *, known: set[str], seed: int
) -> list[Record] | None:
    """No more records than there are."""
    return None
