from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wxb.metrics import evaluation
from wxb.reporting.charts import figures
from wxb.tasks.classification import metrics, page
from wxb.tasks.classification.metrics import PredictionRow
from wxb.tasks.classification.page import worth
from wxb.tasks.classification.page.examples import examples, pieces

COSTS = {
    f"{verb}@{name}": {"seconds": seconds, "inputs": 100, "predicting": seconds / 10}
    for verb in ("train", "evaluate")
    for name, seconds in (("count", 2.0), ("net", 80.0))
}


def rows(right, number=200, evidence=None):
    """Rows of a system whose first `right` predictions are correct."""
    rows = []
    for index in range(number):
        gold = "ab"[index % 2]
        predicted = gold if index < right else "ba"[index % 2]
        probabilities = {name: 0.9 if name == predicted else 0.1 for name in "ab"}
        text = f"a <b> text {index}"
        rows.append(PredictionRow(str(index), text, gold, predicted, probabilities, evidence))
    return rows


def study(count, net, **more):
    systems = {"count": [rows(count, **more)], "net": [rows(net, **more)]}
    comparison = evaluation.compare(metrics.Scorer(), systems)
    encoding = SimpleNamespace(leakage="kept")
    experiments = {
        "count": SimpleNamespace(method="tfidf", encoding=encoding),
        "net": SimpleNamespace(method="encoder", encoding=encoding),
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
    parts = {part.id: part for part in page.Page().parts(study(150, 180, evidence=[(0, 1, 0.5)]))}
    assert [*parts] == ["classes", "calibration", "evidence", "worth"]
    html = "".join(part.html for part in parts.values())
    assert "<b> text" not in html
    assert parts["calibration"].charts["reliability"].data


def test_failures_name_the_worst_class_and_the_most_frequent_confusion():
    system = metrics.Scorer().details([*rows(150)])
    failures = page.Page().failures(system)
    assert failures.startswith("Recall is lowest for a: 75.0% of 100 records.")
    assert failures.endswith("The most frequent error is a classified as b: 25 of 50.")
    assert "no errors" in page.Page().failures(metrics.Scorer().details(rows(200)))


def test_examples_begin_with_errors_and_have_evidence():
    explained = rows(190, evidence=[(0, 1, 1.0)])
    shown = examples([*rows(5, number=5), *explained])
    assert [row.gold == row.predicted for row in shown] == [False] * 3 + [True] * 3


spans = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 8), st.floats(-2, 2, allow_nan=False))
)


@given(st.text(max_size=30), spans)
def test_pieces_concatenate_to_the_text(text, drawn):
    evidence = [(start, start + length, weight) for start, length, weight in drawn]
    parts = pieces(text, evidence)
    assert "".join(piece.text for piece in parts) == text
    assert all(0 <= piece.depth <= 62 for piece in parts)
