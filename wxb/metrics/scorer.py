"""The scorer of a task: what one bootstrap, one test and one table for all tasks are made of.

A score is a function of statistics that add up over records: C numbers a record, such as three
counts for F1, confusion cells for accuracy, n-gram counts for BLEU, edits and lengths for CER.
"""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from numpy.typing import NDArray

from wxb.metrics import Metric

if TYPE_CHECKING:
    from wxb.corpora.records import Record


class Row(Protocol):
    """A test record with its gold and a system's prediction, as a line of predictions.jsonl.

    Tasks have named tuples with these fields first, in any order, and more of their own.
    """

    @property
    def id(self) -> str:
        """The id of the record."""

    @property
    def input(self) -> str:
        """Its input."""

    @property
    def gold(self) -> Any:
        """Its gold."""

    @property
    def group(self) -> str:
        """Rows of one group are resampled together; empty: a group of its own."""

    def _asdict(self) -> dict[str, Any]:
        """The fields, for JSON."""


class Judged(NamedTuple):
    """A row without fields of its own."""

    id: str
    input: str
    gold: Any
    predicted: Any
    group: str = ""


class Scorer(ABC):
    """How a task is scored. The defaults are for gold and predictions that are plain JSON."""

    METRICS: ClassVar[Sequence[Metric]]  # the scores with intervals, in the order of tables
    HEADLINE: ClassVar[str]  # the key of the one that systems are ranked and tested by
    SIGNATURE: ClassVar[str]  # how that one is computed, in a few words, such as sacrebleu's
    UNIT: ClassVar[str]  # what `support` counts, in the plural: spans, records, words
    COUNTS: ClassVar[Mapping[str, str]]  # totals that tables show as numbers, with column titles
    SHARES: ClassVar[Mapping[str, str]] = {}  # totals that are shares, for a table of their own
    ROW: ClassVar[type] = Judged  # a named tuple, see `Row`

    def known(self, records: Iterable[Record]) -> Any:
        """What `judge` needs of the training records; nothing by default."""
        return None

    def judge(self, record: Record, prediction: Any, known: Any) -> Any:
        """The row of a test record and its prediction."""
        fields = {
            "id": record.id,
            "input": record.input,
            "gold": record.gold,
            "group": self.group(record),
        }
        return self.ROW(**{**fields, **self.fields(record, prediction, known)})

    def group(self, record: Record) -> str:
        """The group of a row: the record's; empty if the record is its own group."""
        return "" if record.group == record.input else record.group

    def fields(self, record: Record, prediction: Any, known: Any) -> dict[str, Any]:
        """Further fields of a row, or other values of those that all rows have."""
        return {"predicted": prediction}

    def parse(self, row: Mapping[str, Any]) -> Any:
        """The row of a line of predictions.jsonl."""
        return self.ROW(**row)

    def same(self, row: Any) -> Any:
        """What must be equal in the rows of two systems for them to be compared."""
        return row.id, row.input, row.gold

    @abstractmethod
    def statistics(self, rows: Sequence[Any]) -> NDArray[Any]:
        """The statistics of rows: (N, C)."""

    @abstractmethod
    def scores(self, sums: NDArray[Any]) -> Mapping[str, NDArray[Any]]:
        """The METRICS of sums of statistics (..., C), by key: (...) each."""

    @abstractmethod
    def totals(self, sums: NDArray[Any]) -> dict[str, float]:
        """Numbers without an interval, of the sums (R, C) of R runs; `support` among them."""

    def details(self, rows: Sequence[Any]) -> dict[str, Any]:
        """What the page shows of one run besides the scores, as JSON."""
        return {}

    def write_details(self, folder: Path, rows: Sequence[Any]) -> None:
        """Write tables of one run beside its predictions, for people; none by default."""
        return


def write_table(path: Path, header: Sequence[str], rows: Iterable[Iterable[Any]]) -> None:
    """Write a table as CSV in UTF-8."""
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(header)
        table.writerows(rows)
