import numpy as np
import pytest
from scipy.special import softmax
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score

from wxb.tasks.classification import metrics
from wxb.tasks.classification.metrics import PredictionRow
from wxb.tasks.classification.models.predictor import best_temperature


def rows_of(gold, probabilities, classes):
    return [
        PredictionRow(
            str(n), f"text {n}", g, classes[int(np.argmax(p))], dict(zip(classes, p, strict=True))
        )
        for n, (g, p) in enumerate(zip(gold, probabilities, strict=True))
    ]


def random_rows(count, gold_classes, others=()):
    """Rows whose probabilities are often highest for the gold; the class "unused" has no rows."""
    rng = np.random.default_rng(0)
    classes = [*gold_classes, *others]
    gold = rng.integers(len(gold_classes), size=count)
    logits = rng.normal(size=(count, len(classes)))
    logits[np.arange(count), gold] += 1
    logits[:, [name == "unused" for name in classes]] -= 99
    probabilities = softmax(logits, axis=1).round(6).tolist()
    return rows_of([classes[index] for index in gold], probabilities, classes)


def scores(rows):
    values = metrics.Scorer().scores(metrics.Scorer().sums(rows))
    return {name: float(value) for name, value in values.items()}


@pytest.mark.parametrize(
    ("classes", "others"),
    [("ab", ()), ("abc", ()), ("abcdefghijkl", ()), ("ab", ("without gold", "unused"))],
)
def test_scores_are_scikit_learns(classes, others):
    rows = random_rows(80, classes, others)
    gold, predicted = [row.gold for row in rows], [row.predicted for row in rows]
    assert ("without gold" in predicted, "unused" in predicted) == (bool(others), False)
    ours = scores(rows)
    assert ours["accuracy"] == pytest.approx(accuracy_score(gold, predicted))
    assert ours["f1_macro"] == pytest.approx(f1_score(gold, predicted, average="macro"))
    areas = [
        roc_auc_score([g == name for g in gold], [row.probabilities[name] for row in rows])
        for name in classes
    ]
    details = metrics.Scorer().details(rows)
    assert details["auroc"] == pytest.approx(np.mean(areas))
    assert (details["support"], details["correct"]) == (80, round(80 * ours["accuracy"]))


def test_probabilities_near_one_keep_their_order():
    close = [(0.6, 0.4), (0.9999999, 1e-7), (0.99999999, 1e-8), (1.0, 0.0)]
    rows = rows_of(["b", "b", "a", "a"], [(1.0, small) for _, small in close], ["a", "b"])
    assert metrics.auroc(rows) == 1


def test_one_class_has_no_area():
    assert metrics.auroc(rows_of(["a", "a"], [(0.9,), (0.8,)], ["a"])) == 0


@pytest.mark.parametrize("factor", [0.3, 1.0, 4.0])
def test_the_temperature_undoes_a_scaling_of_the_logits(factor):
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(20_000, 3)) * 2
    labels = np.array([rng.choice(3, p=p) for p in softmax(logits, axis=1)])
    assert best_temperature(logits * factor, labels) == pytest.approx(factor, rel=0.1)
    assert best_temperature(logits[:0], labels[:0]) == 1.0


def test_few_correct_texts_do_not_promise_certainty():
    logits = 2 * np.eye(3)[np.arange(26) % 3]
    temperature = best_temperature(logits, logits.argmax(1))
    assert softmax(logits[0] / temperature)[0] == pytest.approx(27 / 29, abs=1e-3)


def test_a_class_that_training_lacks_counts_as_missed():
    rows = rows_of(["a", "b", "rare"], [(0.9, 0.1), (0.2, 0.8), (0.6, 0.4)], ["a", "b"])
    assert scores(rows)["accuracy"] == pytest.approx(2 / 3)
    assert scores(rows)["f1_macro"] == pytest.approx((2 / 3 + 1 + 0) / 3)
    zeros = {"precision": 0.0, "recall": 0.0, "f1": 0.0}
    assert metrics.by_class(rows)["rare"] == {**zeros, "support": 1, "predicted": 0}
    assert metrics.confusion_matrix(rows)["rare"] == {"a": 1, "b": 0, "rare": 0}
