"""The scores of classification: accuracy, macro F1 and AUROC.

All are functions of sums over records. For each class these are the counts of correct, gold and
predicted records, and a histogram of scores for the area under the ROC curve (AUROC). The area is
the share of pairs, of a positive and a negative record, in which the positive one has the higher
score. Pairs do not add up over records, but counts in bins of scores do. Bins are cut at quantiles
of a run's scores, and two records of one bin count as tied. The area is exact for up to BINS
different scores. With more, the error is at most half the share of pairs within one bin.

Source: Fawcett (2006), "An introduction to ROC analysis".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wxb.metrics import DIGITS, Metric, scorer
from wxb.metrics.scorer import ratio

if TYPE_CHECKING:
    from wxb.corpora.records import Record

BINS = 100
PER_CLASS = 3 + 2 * BINS  # statistics of each class
CLASSES, CONFUSIONS = "by-class.csv", "confusions.csv"


class PredictionRow(NamedTuple):
    """A test record with its predicted class, and the probabilities of all classes."""

    id: str
    input: str
    gold: str
    predicted: str
    probabilities: dict[str, float]
    group: str = ""


class Scorer(scorer.Scorer):
    """The scores of classification."""

    METRICS = (
        Metric("accuracy", "accuracy"),
        Metric("f1_macro", "macro F1"),
        Metric("auroc", "AUROC"),
    )
    HEADLINE = "accuracy"
    SIGNATURE = (
        "accuracy of classes; AUROC of each class against the rest, their mean, from"
        f" {BINS} bins of equally many records"
    )
    UNIT = "records"
    COUNTS: ClassVar = {"correct": "correct"}
    ROW = PredictionRow

    def fields(self, record: Record, prediction: Any, vocabulary: None) -> dict[str, Any]:
        """The predicted class and the probabilities."""
        return {"predicted": prediction.label, "probabilities": dict(prediction.probabilities)}

    def statistics(self, rows: Sequence[PredictionRow]) -> NDArray[np.float64]:
        """The statistics of rows (N, K * PER_CLASS).

        Counts are floats: sums of these are exact, too, and faster.
        """
        classes = classes_of(rows)
        parts = []
        for name, odds in zip(classes, _odds(rows, classes).T, strict=True):
            gold = np.array([row.gold == name for row in rows])
            predicted = np.array([row.predicted == name for row in rows])
            parts += [
                np.stack([gold & predicted, gold, predicted], axis=1),
                histogram(gold, odds),
            ]
        return np.concatenate(parts, axis=1, dtype=np.float64)

    def scores(self, sums: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """The METRICS (...) of sums (..., C).

        Macro F1 is the mean over classes with gold or predicted records. AUROC is the mean over
        classes that some records have and some have not. Both are 0 without such a class.
        """
        by_class = _by_class(sums)  # (..., K, PER_CLASS)
        correct, gold, predicted = np.moveaxis(by_class[..., :3], -1, 0)  # (..., K)
        f1 = ratio(2 * correct, gold + predicted)
        areas, is_defined = area(by_class[..., 3:])
        return {
            "accuracy": ratio(correct.sum(axis=-1), gold.sum(axis=-1)),
            "f1_macro": _mean(f1, gold + predicted > 0),
            "auroc": _mean(areas, is_defined),
        }

    def totals(self, sums: NDArray[Any]) -> dict[str, float]:
        """Counts of records, as means over the sums (R, C) of R runs."""
        counts = _by_class(sums)[..., :2].sum(axis=-2).mean(axis=0)
        correct, support = np.rint(counts).astype(int).tolist()
        return {"support": support, "correct": correct}

    def details(self, rows: Sequence[PredictionRow]) -> dict[str, Any]:
        """Scores by class, and confusions."""
        return {"by_class": by_class(rows), "confusions": confusions(rows)}

    def write_details(self, folder: Path, rows: Sequence[PredictionRow]) -> None:
        """Write the scores by class and the confusions as CSV."""
        details = self.details(rows)
        by_class = [{"class": name, **row} for name, row in details["by_class"].items()]
        _write(folder / CLASSES, by_class)
        crossed = [{"gold": gold, **row} for gold, row in details["confusions"].items()]
        _write(folder / CONFUSIONS, crossed)


def histogram(positive: NDArray[np.bool_], scores: NDArray[np.float64]) -> NDArray[np.bool_]:
    """The bin of each record, one-hot (N, 2 * BINS): first the positive bins, then the negative."""
    values, bins = np.unique(scores, return_inverse=True)
    if len(values) > BINS:
        cuts = np.quantile(scores, np.arange(1, BINS) / BINS, method="nearest")
        bins = np.searchsorted(np.unique(cuts), scores, side="right")
    one_hot = bins[:, None] == np.arange(BINS)  # (N, BINS)
    return np.concatenate([one_hot & positive[:, None], one_hot & ~positive[:, None]], axis=1)


def area(sums: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The area (...) of sums (..., 2 * BINS), and whether both kinds of records exist."""
    positive, negative = sums[..., :BINS], sums[..., BINS:]
    below = np.cumsum(negative, axis=-1) - negative / 2
    won = (positive * below).sum(axis=-1)
    pairs = positive.sum(axis=-1) * negative.sum(axis=-1)
    return ratio(won, pairs), pairs > 0


def classes_of(rows: Iterable[PredictionRow]) -> list[str]:
    """All gold classes, and those that have a probability, sorted."""
    return sorted({name for row in rows for name in (row.gold, *row.probabilities)})


def by_class(rows: Sequence[PredictionRow]) -> dict[str, dict[str, float]]:
    """Precision, recall, F1 and counts of records by class, the most gold records first."""
    gold, predicted = Counter(r.gold for r in rows), Counter(r.predicted for r in rows)
    correct = Counter(row.gold for row in rows if row.gold == row.predicted)
    names = sorted(classes_of(rows), key=lambda name: (-gold[name], name))
    return {
        name: {
            "precision": _share(correct[name], predicted[name]),
            "recall": _share(correct[name], gold[name]),
            "f1": _share(2 * correct[name], gold[name] + predicted[name]),
            "support": gold[name],
            "predicted": predicted[name],
        }
        for name in names
    }


def confusions(rows: Sequence[PredictionRow]) -> dict[str, dict[str, int]]:
    """Counts of records by gold class, then by predicted class."""
    classes = classes_of(rows)
    counts = Counter((row.gold, row.predicted) for row in rows)
    return {gold: {name: counts[gold, name] for name in classes} for gold in classes}


def _odds(rows: Sequence[PredictionRow], classes: Sequence[str]) -> NDArray[np.float64]:
    """The odds p / (1 - p) of each class (N, K).

    1 - p is the sum of the other probabilities, which has more digits if p is near 1.
    """
    probabilities = np.array([[r.probabilities.get(name, 0.0) for name in classes] for r in rows])
    probabilities = probabilities.reshape(-1, len(classes))
    others = probabilities @ (1 - np.eye(len(classes)))
    odds: NDArray[np.float64] = np.full(probabilities.shape, np.inf)
    np.divide(probabilities, others, out=odds, where=others > 0)
    return odds


def _by_class(sums: NDArray[Any]) -> NDArray[Any]:
    """The sums of each class (..., K, PER_CLASS)."""
    return sums.reshape(*sums.shape[:-1], -1, PER_CLASS)


def _mean(values: NDArray[Any], counted: NDArray[np.bool_]) -> NDArray[Any]:
    """The mean over the last axis of the counted values; 0 without any."""
    return ratio(np.where(counted, values, 0).sum(axis=-1), counted.sum(axis=-1))


def _share(part: int, whole: int) -> float:
    return round(part / whole, DIGITS) if whole else 0.0


def _write(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    scorer.write_table(path, [*rows[0]], (row.values() for row in rows))
