from types import SimpleNamespace

import pytest

from wxb.metrics import evaluation
from wxb.reporting.charts import figures
from wxb.tasks.classification import metrics, page
from wxb.tasks.classification.metrics import PredictionRow
from wxb.tasks.classification.page import worth

COSTS = {
    f"{verb}@{name}": {"seconds": seconds, "inputs": 100, "predicting": seconds / 10}
    for verb in ("train", "evaluate")
    for name, seconds in (("count", 2.0), ("net", 80.0))
}


def rows(right, number=200):
    """Rows of a system whose first `right` predictions are correct."""
    rows = []
    for index in range(number):
        gold = "ab"[index % 2]
        predicted = gold if index < right else "ba"[index % 2]
        probabilities = {name: 0.9 if name == predicted else 0.1 for name in "ab"}
        text = f"a <b> text {index}"
        rows.append(PredictionRow(str(index), text, gold, predicted, probabilities))
    return rows


def study(count, net):
    systems = {"count": [rows(count)], "net": [rows(net)]}
    comparison = evaluation.compare(metrics.Scorer(), systems)
    experiments = {
        "count": SimpleNamespace(method="tfidf"),
        "net": SimpleNamespace(method="encoder"),
    }
    return SimpleNamespace(
        comparison={**comparison, "further": {}},
        chips=figures.chips(systems),
        costs=COSTS,
        params=SimpleNamespace(experiments=experiments),
        predictions={name: runs[0] for name, runs in systems.items()},
    )


@pytest.mark.parametrize(
    ("count", "net", "expected"),
    [
        (120, 190, "A neural network is worth it here: net is 0.350 above count in accuracy"),
        (190, 120, "is not worth it here: the best, net, is 0.350 below count in accuracy, beyond"),
        (150, 151, "is not worth it here: the best, net, is 0.005 above count in accuracy, within"),
    ],
)
def test_the_answer_is_that_of_the_paired_test(count, net, expected):
    sentence = str(worth.sentence(study(count, net)))
    assert expected in sentence
    assert "training takes 1 min 20 s against 2.0 s" in sentence
    assert "it classifies 12 texts a second against 500" in sentence


def test_a_study_without_a_baseline_has_no_answer():
    networks = study(120, 190)
    networks.params.experiments["count"].method = "encoder"
    assert worth.sentence(networks) == ""


def test_missing_costs_are_left_out():
    unmeasured = study(120, 190)
    unmeasured.costs = {}
    assert str(worth.sentence(unmeasured)).endswith("beyond noise.")


def test_the_parts_of_a_page_escape_texts():
    parts = {part.id: part for part in page.Page().parts(study(150, 180))}
    assert [*parts] == ["classes", "worth"]
    assert "<b> text" not in "".join(part.html for part in parts.values())


def test_failures_name_the_worst_class_and_the_most_frequent_confusion():
    system = metrics.Scorer().details([*rows(150)])
    failures = page.Page().failures(system)
    assert failures.startswith("Recall is lowest for a: 75.0% of 100 records.")
    assert failures.endswith("The most frequent error is a classified as b: 25 of 50.")
    assert "no errors" in page.Page().failures(metrics.Scorer().details(rows(200)))
