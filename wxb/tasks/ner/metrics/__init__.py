"""Strict scores of typed character spans, the same for all systems.

A predicted span is correct if a gold span of the same document has the same start, end and type.
Item i of `gold` and item i of `predicted` are the spans of the same document. Duplicates in a
document count once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wxb.core.files import write_json
from wxb.metrics import DIGITS, Metric, scorer
from wxb.tasks.ner.metrics.outcomes import count_outcomes
from wxb.tasks.ner.record.spans import Span

if TYPE_CHECKING:
    from wxb.corpora.records import Record


# Columns of every count array.
CORRECT, GOLD, PREDICTED = 0, 1, 2
COLUMNS = 3
# Further columns of `statistics`: gold spans whose mention is in the training records, or is not.
SEEN_CORRECT, SEEN_GOLD, NEW_CORRECT, NEW_GOLD = 3, 4, 5, 6

BY_TYPE, ERRORS = "by_type.csv", "errors.json"


class PredictionRow(NamedTuple):
    """A test record with its gold spans and those that a system predicted."""

    id: str
    input: str
    gold: tuple[Span, ...]
    predicted: tuple[Span, ...]
    scores: tuple[float, ...]  # of the predicted spans, from 0 to 1
    group: str = ""  # of records that are not independent; empty: a group of its own
    seen: tuple[bool, ...] = ()  # whether training has each gold mention; empty: unknown


class Scorer(scorer.Scorer):
    """Strict scores of typed character spans."""

    METRICS = (Metric("precision", "precision"), Metric("recall", "recall"), Metric("f1", "F1"))
    HEADLINE = "f1"
    SIGNATURE = "strict span F1"
    UNIT = "spans"
    COUNTS: ClassVar = {"correct": "correct", "predicted": "predicted", "support": "gold"}
    SHARES: ClassVar = {
        "recall_seen": "recall of seen mentions",
        "recall_unseen": "recall of unseen mentions",
    }
    ROW = PredictionRow

    def vocabulary(self, records: Iterable[Record]) -> set[tuple[str, str]]:
        """The gold mentions of the training records, as text and type."""
        return {
            (record.input[span.start : span.end], span.type)
            for record in records
            for span in record.gold or ()
        }

    def fields(
        self,
        record: Record,
        prediction: Iterable[tuple[Span, float]],
        vocabulary: Set[tuple[str, str]],
    ) -> dict[str, Any]:
        """The fields `gold`, `predicted`, `scores` and `seen` of a `PredictionRow`.

        A gold mention is `seen` if `vocabulary` has it. Scores are rounded to 4 digits.
        """
        gold = record.gold or ()
        spans, scores = zip(*pairs, strict=True) if (pairs := list(prediction)) else ((), ())
        return {
            "gold": gold,
            "predicted": spans,
            "scores": tuple(round(score, 4) for score in scores),
            "seen": tuple(
                (record.input[span.start : span.end], span.type) in vocabulary for span in gold
            ),
        }

    def parse(self, row: Mapping[str, Any]) -> PredictionRow:
        """The row of a parsed line of predictions.jsonl."""
        spans = {key: tuple(Span(*span) for span in row[key]) for key in ("gold", "predicted")}
        flags = {key: tuple(row[key]) for key in ("scores", "seen")}
        return PredictionRow(**{**row, **spans, **flags})

    def statistics(self, rows: Sequence[PredictionRow]) -> NDArray[np.int64]:
        """Counts of spans (records, 7): the columns of `counts`, then of seen and new mentions."""
        seen = np.zeros((len(rows), 4), np.int64)
        for index, row in enumerate(rows):
            for span, is_seen in zip(row.gold, row.seen, strict=bool(row.seen)):
                column = 0 if is_seen else 2
                seen[index, column : column + 2] += span in row.predicted, 1
        return np.concatenate([counts(*_columns(rows)), seen], axis=1)

    def scores(self, sums: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Precision, recall and F1 (...) of summed counts (..., 3 or more)."""
        return dict(zip(("precision", "recall", "f1"), prf(sums[..., :COLUMNS]), strict=True))

    def totals(self, sums: NDArray[np.int64]) -> dict[str, float]:
        """Numbers of spans (means over runs), and recall of seen and of new mentions.

        `sums` are the statistics (R, 7) of R runs. A recall without gold mentions is left out.
        """
        correct, gold, predicted = np.rint(sums.mean(axis=0)).astype(int).tolist()[:COLUMNS]
        total = sums.sum(axis=0).tolist()
        recalls = {
            name: round(total[correct_column] / total[gold_column], DIGITS)
            for name, correct_column, gold_column in (
                ("recall_seen", SEEN_CORRECT, SEEN_GOLD),
                ("recall_unseen", NEW_CORRECT, NEW_GOLD),
            )
            if total[gold_column]
        }
        seen = {"support_seen": total[SEEN_GOLD] // len(sums)} if recalls else {}
        return {**recalls, **seen, "support": gold, "predicted": predicted, "correct": correct}

    def details(self, rows: Sequence[PredictionRow]) -> dict[str, Any]:
        """The number of errors by outcome, and scores by type."""
        gold, predicted = _columns(rows)
        return {
            "errors": count_outcomes(gold, predicted),
            "by_type": {
                kind: self._type_row(table.sum(axis=0))
                for kind, table in by_type(gold, predicted).items()
            },
        }

    def write_details(self, folder: Path, rows: Sequence[PredictionRow]) -> None:
        """Write scores by type as CSV and the number of errors by outcome as JSON."""
        details = self.details(rows)
        header = ["type", "precision", "recall", "f1", "support", "predicted"]
        lines = ([kind, *row.values()] for kind, row in details["by_type"].items())
        scorer.write_table(folder / BY_TYPE, header, lines)
        write_json(folder / ERRORS, details["errors"])

    def _type_row(self, sums: NDArray[np.int64]) -> dict[str, float]:
        scores = {name: round(float(value), DIGITS) for name, value in self.scores(sums).items()}
        return {**scores, "support": int(sums[GOLD]), "predicted": int(sums[PREDICTED])}


def _columns(
    rows: Sequence[PredictionRow],
) -> tuple[list[tuple[Span, ...]], list[tuple[Span, ...]]]:
    return [row.gold for row in rows], [row.predicted for row in rows]


def counts(
    gold: Sequence[Iterable[Span]], predicted: Sequence[Iterable[Span]]
) -> NDArray[np.int64]:
    """Counts of spans (documents, 3): the columns CORRECT, GOLD and PREDICTED."""
    documents = zip(map(set, gold), map(set, predicted), strict=True)
    rows = [(len(g & p), len(g), len(p)) for g, p in documents]
    return np.array(rows, dtype=np.int64).reshape(-1, COLUMNS)


def by_type(
    gold: Sequence[Iterable[Span]], predicted: Sequence[Iterable[Span]]
) -> dict[str, NDArray[np.int64]]:
    """Counts of spans (documents, 3) for each gold or predicted type, sorted by name.

    The columns are CORRECT, GOLD and PREDICTED.
    """

    def only(kind: str, documents: Sequence[Iterable[Span]]) -> list[list[Span]]:
        return [[span for span in spans if span.type == kind] for spans in documents]

    types = sorted({span.type for spans in (*gold, *predicted) for span in spans})
    return {kind: counts(only(kind, gold), only(kind, predicted)) for kind in types}


def prf(counts: ArrayLike) -> tuple[Any, Any, Any]:
    """Precision, recall and F1 of counts (..., 3), each from 0 to 1; 0/0 is 0.

    The columns are CORRECT, GOLD and PREDICTED. Returns arrays (...), or floats for one vector. For
    the micro average, sum over documents first: `prf(counts(gold, predicted).sum(axis=0))`.
    """
    correct, gold, predicted = np.moveaxis(np.asarray(counts), -1, 0)
    ratios = (
        scorer.ratio(correct, predicted),
        scorer.ratio(correct, gold),
        # Equal to the harmonic mean of precision and recall, in a single division.
        scorer.ratio(2 * correct, gold + predicted),
    )
    precision, recall, f1 = (ratio if ratio.ndim else ratio.item() for ratio in ratios)
    return precision, recall, f1
