"""The base class of scorers. Each task has one; intervals, tests and tables are the same for all.

A metric is a function of statistics that sum over records, such as three counts for F1, n-gram
counts for BLEU, edits and lengths for CER: see a task's `metrics.py`. Other results are `details`.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wxb.corpora.records import Record
from wxb.metrics import DIGITS, Metric
from wxb.metrics.intervals import Sums


class PredictionRow(NamedTuple):
    """A line of predictions.jsonl: a test record with its gold and the prediction of a system.

    A task with further fields has its own named tuple, whose types parse the line. Rows of one
    `group` count as one observation; without a group, a row is its own.
    """

    id: str
    input: str
    gold: Any
    predicted: Any
    group: str = ""
    language: str = ""


class Scorer(ABC):
    """The metrics of a task. The defaults are for gold and predictions that are plain JSON."""

    METRICS: ClassVar[Sequence[Metric]]  # the metrics with intervals, in the order of tables
    HEADLINE: ClassVar[str] = ""  # key of the metric that ranks and tests systems; empty: the first
    SIGNATURE: ClassVar[str]  # how the headline is computed, such as sacrebleu's signature
    UNIT: ClassVar[str] = "records"  # what `support` counts, in the plural: spans, words
    COUNTS: ClassVar[Mapping[str, str]] = {"support": "records"}  # keys of details: column titles
    SHARES: ClassVar[Mapping[str, str]] = {}  # keys of details shown as shares, in a second table
    ROW: ClassVar[type] = PredictionRow  # a named tuple with at least its fields

    def metrics(self, sums: Sums) -> Sequence[Metric]:
        """The METRICS that a test set with these sums has; by default all."""
        return self.METRICS

    def headline(self, sums: Sums) -> Metric:
        """The metric that ranks and tests systems on a test set with these sums."""
        return {metric.key: metric for metric in self.METRICS}[self.HEADLINE or self.METRICS[0].key]

    def vocabulary(self, records: Iterable[Record]) -> Any:
        """Words or mentions of the training records, for `task_fields`; None by default."""
        return None

    def rows(
        self, records: Sequence[Record], predictions: Sequence[Any], vocabulary: Any = None
    ) -> list[Any]:
        """The ROW of each test record; `group` is empty if the group of the record is its input."""
        rows = []
        for record, prediction in zip(records, predictions, strict=True):
            group = "" if record.group == record.input else record.group
            fields = {"id": record.id, "input": record.input, "gold": record.gold, "group": group}
            fields |= {"language": record.language or ""}
            rows.append(self.ROW(**fields | self.task_fields(record, prediction, vocabulary)))
        return rows

    def task_fields(self, record: Record, prediction: Any, vocabulary: Any) -> dict[str, Any]:
        """Fields of a row that a task adds to those of `rows`; by default `predicted`."""
        return {"predicted": prediction}

    @abstractmethod
    def statistics(self, rows: Sequence[Any]) -> Sums:
        """The statistics of rows by name: (N,), or (N, K) if one has K numbers."""

    @abstractmethod
    def scores(self, sums: Sums) -> Mapping[str, NDArray[Any]]:
        """The METRICS by key, each (...), from sums of statistics, (...) or (..., K)."""

    def details(self, rows: Sequence[Any]) -> dict[str, Any]:
        """Numbers and tables that are no METRICS, as JSON, of one run; by default only `support`.

        Numbers of several runs are averaged; tables are those of the first.
        """
        return {"support": len(rows)}

    def sums(self, rows: Sequence[Any]) -> dict[str, Any]:
        """The sums of the statistics of rows by name: NumPy numbers, or arrays (K,)."""
        return {name: values.sum(axis=0) for name, values in self.statistics(rows).items()}

    def rounded_scores(self, rows: Sequence[Any]) -> dict[str, float]:
        """The METRICS of some rows by key, with DIGITS decimals, for tables among the details."""
        scores = self.scores(self.sums(rows))
        return {key: round(float(value), DIGITS) for key, value in scores.items()}

    def copy_files(self, folder: Path, rows: Sequence[Any]) -> None:
        """Copy files that the page shows to the folder of the predictions; none by default."""
        return


def ratio(numerator: NDArray[Any], denominator: NDArray[Any]) -> NDArray[Any]:
    """The numerator over the denominator, element-wise; 0 where the denominator is 0."""
    zeros = np.zeros(np.broadcast(numerator, denominator).shape)
    return np.divide(numerator, denominator, out=zeros, where=np.asarray(denominator) != 0)


def metric_of_sums(metric: Any, sums: NDArray[Any]) -> NDArray[Any]:
    """A metric of sacrebleu (...) from sums (..., C) of its statistics."""
    rows = sums.reshape(-1, sums.shape[-1]).tolist()
    scores = [metric._compute_score_from_stats(row).score for row in rows]
    return np.array(scores).reshape(sums.shape[:-1])
