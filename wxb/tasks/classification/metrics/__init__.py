"""Scores of classes: accuracy, macro F1, area under the ROC curve, calibration error.

All are functions of sums over records. Of each class there are three counts, of right, gold and
predicted records, and a histogram of how the records that are of it, and those that are not, are
scored for it (`metrics.ranking`); then the bins of calibration (`metrics.calibration`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wxb.metrics import DIGITS, Metric, scorer
from wxb.tasks.classification.metrics import calibration, evidence, ranking

if TYPE_CHECKING:
    from wxb.corpora.records import Record


OF_CLASS = 3 + 2 * ranking.BINS  # statistics of each class
CLASSES, CONFUSIONS, CALIBRATION = "by-class.csv", "confusions.csv", "calibration.csv"


class Judged(NamedTuple):
    """A test record with the class that a system gave it, and how likely it takes each to be.

    `evidence` is what decided: stretches of the text (start, end) with their weights, positive for
    the predicted class; None where nobody asked.
    """

    id: str
    input: str
    gold: str
    predicted: str
    probabilities: dict[str, float]
    evidence: list[tuple[int, int, float]] | None = None
    group: str = ""


class Scorer(scorer.Scorer):
    """Scores of classes, from counts, histograms of probabilities and bins of calibration."""

    METRICS = (
        Metric("accuracy", "accuracy"),
        Metric("f1_macro", "macro F1"),
        Metric("auroc", "AUROC"),
    )
    HEADLINE = "accuracy"
    SIGNATURE = (
        "accuracy of classes; AUROC of each class against the rest, their mean, from"
        f" {ranking.BINS} bins of equally many records"
    )
    UNIT = "records"
    COUNTS: ClassVar = {"correct": "right"}
    SHARES: ClassVar = {"ece": "expected calibration error"}
    ROW = Judged

    def fields(self, record: Record, prediction: Any, known: None) -> dict[str, Any]:
        """The class, the probabilities of all, and the evidence."""
        evidence = prediction.evidence
        return {
            "predicted": prediction.label,
            "probabilities": dict(prediction.probabilities),
            "evidence": None if evidence is None else [*evidence],
        }

    def parse(self, row: Mapping[str, Any]) -> Judged:
        """The row of a line of predictions.jsonl."""
        evidence = row["evidence"]
        stretches = None if evidence is None else [tuple(stretch) for stretch in evidence]
        return Judged(**{**row, "evidence": stretches})

    def statistics(self, rows: Sequence[Judged]) -> NDArray[np.float64]:
        """What adds up: (records, K * OF_CLASS + 3 * calibration.BINS).

        Counts are exact as floats too, whose sums take less time.
        """
        classes = classes_of(rows)
        parts = []
        for name, likelihood in zip(classes, _odds(rows, classes).T, strict=True):
            gold = np.array([row.gold == name for row in rows])
            predicted = np.array([row.predicted == name for row in rows])
            parts += [
                np.stack([gold & predicted, gold, predicted], axis=1),
                ranking.histogram(gold, likelihood),
            ]
        right = np.array([row.gold == row.predicted for row in rows])
        parts.append(calibration.histogram(right, _confidences(rows)))
        return np.concatenate(parts, axis=1, dtype=np.float64)

    def scores(self, sums: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """The METRICS (...) of sums (..., C).

        Macro F1 is the mean over classes that are gold or predicted, AUROC over those with records
        that are of it and that are not; 0 where there is none.
        """
        by_class = _by_class(sums)  # (..., K, OF_CLASS)
        correct, gold, predicted = np.moveaxis(by_class[..., :3], -1, 0)  # (..., K)
        f1 = _ratio(2 * correct, gold + predicted)
        area, there = ranking.area(by_class[..., 3:])
        return {
            "accuracy": _ratio(correct.sum(axis=-1), gold.sum(axis=-1)),
            "f1_macro": _mean(f1, gold + predicted > 0),
            "auroc": _mean(area, there),
        }

    def totals(self, sums: NDArray[Any]) -> dict[str, float]:
        """Numbers of records of a run, means over runs (R, C); and the calibration error."""
        counts = _by_class(sums)[..., :2].sum(axis=-2).mean(axis=0)
        correct, support = np.rint(counts).astype(int).tolist()
        error = calibration.error(sums[..., -3 * calibration.BINS :]).mean()
        return {"support": support, "correct": correct, "ece": round(float(error), DIGITS)}

    def details(self, rows: Sequence[Judged]) -> dict[str, Any]:
        """Scores by class, confusions, calibration, and the words that decide."""
        right = np.array([row.gold == row.predicted for row in rows])
        bins = calibration.histogram(right, _confidences(rows)).sum(axis=0)
        return {
            "by_class": by_class(rows),
            "confusions": confusions(rows),
            "calibration": calibration.rows(bins),
            "deciding": evidence.deciding(rows),
        }

    def write_details(self, folder: Path, rows: Sequence[Judged]) -> None:
        """Write the scores by class, the confusions and the calibration as CSV."""
        tables = self.details(rows)
        named = [{"class": name, **row} for name, row in tables["by_class"].items()]
        _write(folder / CLASSES, named)
        crossed = [{"gold": gold, **row} for gold, row in tables["confusions"].items()]
        _write(folder / CONFUSIONS, crossed)
        _write(folder / CALIBRATION, tables["calibration"])


def classes_of(rows: Iterable[Judged]) -> list[str]:
    """All classes that records are of, or that a system knows, sorted."""
    return sorted({name for row in rows for name in (row.gold, *row.probabilities)})


def by_class(rows: Sequence[Judged]) -> dict[str, dict[str, float]]:
    """Precision, recall, F1 and numbers of records of each class, most gold records first."""
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


def confusions(rows: Sequence[Judged]) -> dict[str, dict[str, int]]:
    """How many records of each gold class were given each class."""
    classes = classes_of(rows)
    counts = Counter((row.gold, row.predicted) for row in rows)
    return {gold: {name: counts[gold, name] for name in classes} for gold in classes}


def _odds(rows: Sequence[Judged], classes: Sequence[str]) -> NDArray[np.float64]:
    """How likely each class (N, K) is beside all others: p / (1 - p).

    What 1 - p is, the other classes tell to more digits than p.
    """
    likely = np.array([[row.probabilities.get(name, 0.0) for name in classes] for row in rows])
    likely = likely.reshape(-1, len(classes))
    others = likely @ (1 - np.eye(len(classes)))
    odds: NDArray[np.float64] = np.full(likely.shape, np.inf)
    np.divide(likely, others, out=odds, where=others > 0)
    return odds


def _confidences(rows: Sequence[Judged]) -> NDArray[np.float64]:
    return np.array([row.probabilities.get(row.predicted, 0.0) for row in rows])


def _by_class(sums: NDArray[Any]) -> NDArray[Any]:
    return sums[..., : -3 * calibration.BINS].reshape(*sums.shape[:-1], -1, OF_CLASS)


def _mean(values: NDArray[Any], counted: NDArray[np.bool_]) -> NDArray[Any]:
    """Over the last axis, of the counted ones."""
    return _ratio(np.where(counted, values, 0).sum(axis=-1), counted.sum(axis=-1))


def _ratio(numerator: NDArray[Any], denominator: NDArray[Any]) -> NDArray[Any]:
    zeros = np.zeros(np.broadcast(numerator, denominator).shape)
    found: NDArray[Any] = np.divide(numerator, denominator, out=zeros, where=denominator != 0)
    return found


def _share(part: int, whole: int) -> float:
    return round(part / whole, DIGITS) if whole else 0.0


def _write(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    scorer.write_table(path, [*rows[0]], (row.values() for row in rows))
