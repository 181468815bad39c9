"""What a task's `metrics` gives, so that one bootstrap, one test and one table serve all tasks.

A score is a function of statistics that add up over records: C numbers a record, such as three
counts for F1, confusion cells for accuracy, n-gram counts for BLEU, edits and lengths for CER.
Below are what those take whose gold and predictions are plain JSON, such as labels and texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

from wxb.metrics import Metric


class Row(Protocol):
    """One test record with its gold and what a system predicted, as predictions.jsonl keeps it."""

    @property
    def id(self) -> str:
        """Of the record."""

    @property
    def group(self) -> str:
        """Rows of one group are resampled together; empty: a group of its own."""

    def _asdict(self) -> dict[str, Any]:
        """For JSON."""


class Scorer(Protocol):
    """The module `metrics` of a task."""

    @property
    def METRICS(self) -> Sequence[Metric]:  # noqa: N802
        """The scores that have intervals, in the order of tables."""

    @property
    def HEADLINE(self) -> str:  # noqa: N802
        """The key of the one that systems are ranked and tested by."""

    @property
    def SIGNATURE(self) -> str:  # noqa: N802
        """How that one is computed, in a few words, such as sacrebleu's signature."""

    @property
    def UNIT(self) -> str:  # noqa: N802
        """What `support` counts, in the plural: spans, records, words."""

    @property
    def COUNTS(self) -> Mapping[str, str]:  # noqa: N802
        """Which of the totals tables show as numbers, and the titles of their columns."""

    @property
    def SHARES(self) -> Mapping[str, str]:  # noqa: N802
        """Which of the totals are shares that a table of their own shows, and what of."""

    def known(self, records: Iterable[Any]) -> Any:
        """What of the training records `judge` needs."""

    def judge(self, record: Any, prediction: Any, known: Any) -> Row:
        """A test record with what was predicted for it."""

    def parse(self, row: Mapping[str, Any]) -> Row:
        """A row as predictions.jsonl has it."""

    def same(self, row: Any) -> Any:
        """What must be equal in the rows of two systems for them to be compared."""

    def statistics(self, rows: Sequence[Any]) -> NDArray[Any]:
        """What adds up: (N, C)."""

    def scores(self, sums: NDArray[Any]) -> Mapping[str, NDArray[Any]]:
        """The METRICS of sums of statistics (..., C), by key: (...) each."""

    def totals(self, sums: NDArray[Any]) -> dict[str, float]:
        """What is told without an interval, of the sums (R, C) of R runs; `support` among it."""

    def details(self, rows: Sequence[Any]) -> dict[str, Any]:
        """What the page tells of one run besides, as JSON."""

    def write_details(self, folder: Path, rows: Sequence[Any]) -> None:
        """Tables of one run beside its predictions, for people."""


class Judged(NamedTuple):
    """One test record with its gold and what a system predicted."""

    id: str
    input: str
    gold: Any
    predicted: Any
    group: str = ""


def known(records: Iterable[Any]) -> None:
    """Nothing of the training records is needed."""


def judge(record: Any, prediction: Any, known: None) -> Judged:
    """A test record with its prediction; a record that is its own group stays ungrouped."""
    group = "" if record.group == record.input else record.group
    return Judged(record.id, record.input, record.gold, prediction, group)


def parse(row: Mapping[str, Any]) -> Judged:
    """A row of predictions.jsonl."""
    return Judged(**row)


def same(row: Judged) -> tuple[str, str, Any]:
    """What the rows of two systems must share: record, text and gold."""
    return row.id, row.input, row.gold


def details(rows: Sequence[Judged]) -> dict[str, Any]:
    """Nothing besides the scores."""
    return {}


def write_details(folder: Path, rows: Sequence[Judged]) -> None:
    """Write no tables."""
