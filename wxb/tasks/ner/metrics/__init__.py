"""Strict scores of typed character spans, whatever found them: one scorer for all systems.

A predicted span is correct when a gold span of the same document has the same start, end and
type. Documents are position-aligned sequences: item i of `gold` and of `predicted` hold the spans
of the same document. Within one document spans are a set: a duplicate counts once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wxb.core.files import write_json
from wxb.metrics import DIGITS, Metric, scorer
from wxb.tasks.ner.metrics.outcomes import breakdown
from wxb.tasks.ner.record.spans import Span, aligned

if TYPE_CHECKING:
    from wxb.corpora.records import Record


# Columns of every count array.
CORRECT, GOLD, PREDICTED = 0, 1, 2
COLUMNS = 3
# Of `statistics` also these: gold mentions that training has, and has not, and those found.
SEEN_CORRECT, SEEN_GOLD, NEW_CORRECT, NEW_GOLD = 3, 4, 5, 6

BY_TYPE, ERRORS = "by_type.csv", "errors.json"


class Judged(NamedTuple):
    """One test record with its gold spans and what a system found."""

    id: str
    input: str
    gold: tuple[Span, ...]
    predicted: tuple[Span, ...]
    scores: tuple[float, ...]  # of the predicted spans, in [0, 1]
    group: str = ""  # records of one group are resampled together; empty: a group of its own
    seen: tuple[bool, ...] = ()  # for each gold span, whether training has it; empty: not known


class Scorer(scorer.Scorer):
    """Strict scores of typed character spans."""

    METRICS = (Metric("precision", "precision"), Metric("recall", "recall"), Metric("f1", "F1"))
    HEADLINE = "f1"
    SIGNATURE = "strict span F1"
    UNIT = "spans"
    COUNTS: ClassVar = {"correct": "right", "predicted": "found", "support": "gold"}
    SHARES: ClassVar = {
        "recall_seen": "recall of mentions that training has",
        "recall_unseen": "recall of other mentions",
    }
    ROW = Judged

    def known(self, records: Iterable[Record]) -> set[tuple[str, str]]:
        """The gold mentions of records, as text and type."""
        return {
            (record.input[span.start : span.end], span.type)
            for record in records
            for span in record.gold or ()
        }

    def fields(
        self, record: Record, prediction: Iterable[tuple[Span, float]], known: Set[tuple[str, str]]
    ) -> dict[str, Any]:
        """The spans and scores predicted, and which gold mentions are in `known`."""
        gold = record.gold or ()
        spans, scores = zip(*pairs, strict=True) if (pairs := list(prediction)) else ((), ())
        return {
            "gold": gold,
            "predicted": spans,
            "scores": tuple(round(score, 4) for score in scores),
            "seen": tuple(
                (record.input[span.start : span.end], span.type) in known for span in gold
            ),
        }

    def parse(self, row: Mapping[str, Any]) -> Judged:
        """The row of a line of predictions.jsonl."""
        spans = {key: tuple(Span(*span) for span in row[key]) for key in ("gold", "predicted")}
        flags = {key: tuple(row[key]) for key in ("scores", "seen")}
        return Judged(**{**row, **spans, **flags})

    def statistics(self, rows: Sequence[Judged]) -> NDArray[np.int64]:
        """Counts of spans (records, 7): those of `counts`, then of seen and new mentions."""
        seen = np.zeros((len(rows), 4), np.int64)
        for place, row in enumerate(rows):
            for span, known in zip(row.gold, row.seen, strict=bool(row.seen)):
                column = 0 if known else 2
                seen[place, column : column + 2] += span in row.predicted, 1
        return np.concatenate([counts(*_columns(rows)), seen], axis=1)

    def scores(self, sums: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Precision, recall and F1 (...) of summed counts (..., 3 or more)."""
        return _scores(sums)

    def totals(self, sums: NDArray[np.int64]) -> dict[str, float]:
        """Numbers of spans a run (means over runs), and recall by whether training has the mention.

        `sums` are the statistics (R, 7) of R runs. Recalls are left out where that is not known.
        """
        correct, gold, predicted = np.rint(sums.mean(axis=0)).astype(int).tolist()[:COLUMNS]
        every = sums.sum(axis=0).tolist()
        recalls = {
            name: round(every[found] / every[of], DIGITS)
            for name, found, of in (
                ("recall_seen", SEEN_CORRECT, SEEN_GOLD),
                ("recall_unseen", NEW_CORRECT, NEW_GOLD),
            )
            if every[of]
        }
        seen = {"support_seen": every[SEEN_GOLD] // len(sums)} if recalls else {}
        return {**recalls, **seen, "support": gold, "predicted": predicted, "correct": correct}

    def details(self, rows: Sequence[Judged]) -> dict[str, Any]:
        """The kinds of errors, and scores by type."""
        gold, predicted = _columns(rows)
        return {
            "errors": breakdown(gold, predicted),
            "by_type": {
                kind: _type_row(table.sum(axis=0))
                for kind, table in by_type(gold, predicted).items()
            },
        }

    def write_details(self, folder: Path, rows: Sequence[Judged]) -> None:
        """Write the table by type and the breakdown of errors."""
        found = self.details(rows)
        header = ["type", "precision", "recall", "f1", "support", "predicted"]
        lines = ([kind, *row.values()] for kind, row in found["by_type"].items())
        scorer.write_table(folder / BY_TYPE, header, lines)
        write_json(folder / ERRORS, found["errors"])


def _scores(sums: NDArray[Any]) -> dict[str, NDArray[Any]]:
    return dict(zip(("precision", "recall", "f1"), prf(sums[..., :COLUMNS]), strict=True))


def _type_row(sums: NDArray[np.int64]) -> dict[str, float]:
    found = {name: round(float(value), DIGITS) for name, value in _scores(sums).items()}
    return {**found, "support": int(sums[GOLD]), "predicted": int(sums[PREDICTED])}


def _columns(rows: Sequence[Judged]) -> tuple[list[tuple[Span, ...]], list[tuple[Span, ...]]]:
    return [row.gold for row in rows], [row.predicted for row in rows]


def counts(
    gold: Sequence[Iterable[Span]], predicted: Sequence[Iterable[Span]]
) -> NDArray[np.int64]:
    """Count spans per document: shape (documents, 3), columns CORRECT, GOLD and PREDICTED.

    Raises:
        ValueError: `gold` and `predicted` hold different numbers of documents.
    """
    rows = [(len(g & p), len(g), len(p)) for g, p in aligned(gold, predicted)]
    return np.array(rows, dtype=np.int64).reshape(-1, COLUMNS)


def by_type(
    gold: Sequence[Iterable[Span]], predicted: Sequence[Iterable[Span]]
) -> dict[str, NDArray[np.int64]]:
    """Count spans per document as `counts` does, for each type on either side, sorted by name.

    Raises:
        ValueError: `gold` and `predicted` hold different numbers of documents.
    """
    documents = aligned(gold, predicted)
    types = sorted({span.type for g, p in documents for span in g | p})
    tables = {name: np.zeros((len(documents), COLUMNS), dtype=np.int64) for name in types}
    for row, (g, p) in enumerate(documents):
        for column, spans in ((CORRECT, g & p), (GOLD, g), (PREDICTED, p)):
            for span in sorted(spans):
                tables[span.type][row, column] += 1
    return tables


def prf(counts: ArrayLike) -> tuple[Any, Any, Any]:
    """Compute precision, recall and F1, each in [0, 1], with 0/0 taken as 0.

    `counts` has CORRECT, GOLD and PREDICTED on its last axis. A single vector gives three floats;
    leading axes give three arrays of that leading shape. For the micro average over documents
    sum first: `prf(counts(gold, predicted).sum(axis=0))`.

    Raises:
        ValueError: the last axis does not have length 3.
    """
    table = np.asarray(counts)
    if table.shape[-1:] != (COLUMNS,):
        raise ValueError(f"found counts of shape {table.shape}, expected (..., {COLUMNS})")
    correct, gold, predicted = np.moveaxis(table, -1, 0)
    return (
        _ratio(correct, predicted),
        _ratio(correct, gold),
        # Equal to the harmonic mean of precision and recall, in a single division.
        _ratio(2 * correct, gold + predicted),
    )


def _ratio(numerator: NDArray[Any], denominator: NDArray[Any]) -> Any:
    zeros = np.zeros(numerator.shape)
    ratio = np.divide(numerator, denominator, out=zeros, where=denominator != 0)
    return ratio if ratio.ndim else ratio.item()
