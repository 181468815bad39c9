"""The scores of classification: accuracy and macro F1, which are functions of sums, and AUROC.

Source of AUROC: Fawcett (2006), "An introduction to ROC analysis".
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wxb.corpora.records import Record
from wxb.metrics import DIGITS, Metric, scorer
from wxb.metrics.intervals import Sums
from wxb.metrics.scorer import ratio


class PredictionRow(NamedTuple):
    """A test record with its predicted class, and the probabilities of all classes."""

    id: str
    input: str
    gold: str
    predicted: str
    probabilities: dict[str, float]
    group: str = ""
    language: str = ""


class Scorer(scorer.Scorer):
    """The scores of classification."""

    METRICS = (Metric("accuracy", "accuracy"), Metric("f1_macro", "macro F1"))
    SIGNATURE = "accuracy of classes; AUROC of each class against the rest, their mean"
    COUNTS: ClassVar = {"correct": "correct"}
    SHARES: ClassVar = {"auroc": "AUROC"}
    ROW = PredictionRow

    def task_fields(self, record: Record, prediction: Any, vocabulary: None) -> dict[str, Any]:
        """The predicted class and the probabilities."""
        return {"predicted": prediction.label, "probabilities": dict(prediction.probabilities)}

    def statistics(self, rows: Sequence[PredictionRow]) -> Sums:
        """Indicators (N, K), by `classes_of`, of `gold`, `predicted` and both (`correct`)."""
        classes = np.array(classes_of(rows))
        gold = np.array([row.gold for row in rows])[:, None] == classes
        predicted = np.array([row.predicted for row in rows])[:, None] == classes
        columns = {"correct": gold & predicted, "gold": gold, "predicted": predicted}
        return {name: values.astype(float) for name, values in columns.items()}

    def scores(self, sums: Sums) -> dict[str, NDArray[Any]]:
        """The METRICS (...) of sums (..., K); macro F1 is over gold and predicted classes."""
        correct, gold, predicted = sums["correct"], sums["gold"], sums["predicted"]
        f1 = ratio(2 * correct, gold + predicted)
        return {
            "accuracy": ratio(correct.sum(axis=-1), gold.sum(axis=-1)),
            "f1_macro": ratio(f1.sum(axis=-1), (gold + predicted > 0).sum(axis=-1)),
        }

    def details(self, rows: Sequence[PredictionRow]) -> dict[str, Any]:
        """Counts (`support`, `correct`), `auroc`, scores `by_class`, and `confusions`."""
        return {
            "support": len(rows),
            "correct": sum(row.gold == row.predicted for row in rows),
            "auroc": auroc(rows),
            "by_class": by_class(rows),
            "confusions": confusion_matrix(rows),
        }


def auroc(rows: Sequence[PredictionRow]) -> float:
    """The mean area under the ROC curves of classes that some records have and some have not.

    0 without such a class. Records are ranked by odds, as probabilities near 1 lack digits.
    """
    from sklearn.metrics import roc_auc_score  # its import takes a second

    classes = classes_of(rows)
    areas = [
        roc_auc_score(gold, odds)
        for name, odds in zip(classes, _odds(rows, classes).T, strict=True)
        if len({*(gold := [row.gold == name for row in rows])}) == 2
    ]
    return float(np.mean(areas)) if areas else 0.0


def classes_of(rows: Iterable[PredictionRow]) -> list[str]:
    """All gold classes, and those that have a probability, sorted."""
    return sorted({name for row in rows for name in (row.gold, *row.probabilities)})


def by_class(rows: Sequence[PredictionRow]) -> dict[str, dict[str, float]]:
    """Rounded precision, recall and F1, `support` and `predicted` by class, the commonest first."""
    gold, predicted = Counter(r.gold for r in rows), Counter(r.predicted for r in rows)
    correct = Counter(row.gold for row in rows if row.gold == row.predicted)
    names = sorted(classes_of(rows), key=lambda name: (-gold[name], name))
    return {
        name: {
            "precision": round(correct[name] / max(predicted[name], 1), DIGITS),
            "recall": round(correct[name] / max(gold[name], 1), DIGITS),
            "f1": round(2 * correct[name] / max(gold[name] + predicted[name], 1), DIGITS),
            "support": gold[name],
            "predicted": predicted[name],
        }
        for name in names
    }


def confusion_matrix(rows: Sequence[PredictionRow]) -> dict[str, dict[str, int]]:
    """Counts of records by gold class, then by predicted class; also those that are 0."""
    classes = classes_of(rows)
    counts = Counter((row.gold, row.predicted) for row in rows)
    return {gold: {name: counts[gold, name] for name in classes} for gold in classes}


def _odds(rows: Sequence[PredictionRow], classes: Sequence[str]) -> NDArray[np.float64]:
    """The finite odds (N, K) of each class: p over the sum of the others, which has more digits."""
    probabilities = np.array([[r.probabilities.get(name, 0.0) for name in classes] for r in rows])
    probabilities = probabilities.reshape(-1, len(classes))
    others = probabilities @ (1 - np.eye(len(classes)))
    odds: NDArray[np.float64] = np.full(probabilities.shape, np.inf)
    np.divide(probabilities, others, out=odds, where=others > 0)
    return np.minimum(odds, np.finfo(float).max)  # scikit-learn refuses infinities
