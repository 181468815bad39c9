from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wxb.metrics import evaluation
from wxb.tasks.classification import metrics, page
from wxb.tasks.classification.metrics import Judged
from wxb.tasks.classification.page import worth
from wxb.tasks.classification.page.examples import examples, pieces

COSTS = {
    f"{verb}@{name}": {"seconds": seconds, "inputs": 100, "predicting": seconds / 10}
    for verb in ("train", "evaluate")
    for name, seconds in (("count", 2.0), ("net", 80.0))
}


def rows(right, number=200, evidence=None):
    """A system that is right on the first so many of some records."""
    found = []
    for place in range(number):
        gold = "ab"[place % 2]
        said = gold if place < right else "ba"[place % 2]
        likely = {name: 0.9 if name == said else 0.1 for name in "ab"}
        found.append(Judged(str(place), f"a <b> text {place}", gold, said, likely, evidence))
    return found


def study(count, net, **more):
    systems = {"count": [rows(count, **more)], "net": [rows(net, **more)]}
    comparison = evaluation.compare(metrics.Scorer(), systems, resamples=400, seed=1)
    encoding = SimpleNamespace(giveaways="kept")
    experiments = {
        "count": SimpleNamespace(method="tfidf", encoding=encoding),
        "net": SimpleNamespace(method="encoder", encoding=encoding),
    }
    return SimpleNamespace(
        comparison={**comparison, "further": {}},
        costs=COSTS,
        params=SimpleNamespace(experiments=experiments),
        judged={name: runs[0] for name, runs in systems.items()},
    )


@pytest.mark.parametrize(
    ("count", "net", "told"),
    [
        (120, 190, "A neural network is worth it here: net is 0.350 above count in accuracy"),
        (190, 120, "is not worth it here: the best, net, is 0.350 below count in accuracy, beyond"),
        (150, 151, "is not worth it here: the best, net, is 0.005 above count in accuracy, within"),
    ],
)
def test_the_answer_is_that_of_the_paired_test(count, net, told):
    said = str(worth.sentence(study(count, net)))
    assert told in said
    assert "training takes 1 min 20 s and 2.0 s" in said
    assert "in a second it classifies 12 texts and 500" in said


def test_a_study_without_both_has_no_answer():
    given = study(120, 190)
    given.params.experiments["count"].method = "encoder"
    assert worth.sentence(given) == ""


def test_costs_that_nobody_measured_are_left_out():
    given = study(120, 190)
    given.costs = {}
    assert str(worth.sentence(given)).endswith("beyond noise.")


def test_the_parts_of_a_page_escape_what_comes_from_data():
    made = {part.id: part for part in page.Page().parts(study(150, 180, evidence=[(0, 1, 0.5)]))}
    assert [*made] == ["classes", "calibration", "evidence", "worth"]
    html = "".join(part.html for part in made.values())
    assert "<b> text" not in html
    assert made["calibration"].charts["reliability"].data


def test_failures_name_the_worst_class_and_the_commonest_confusion():
    system = metrics.Scorer().details([*rows(150)])
    told = page.Page().failures(system)
    assert told.startswith("Of a it finds the least: 75.0% of 100.")
    assert told.endswith("Its commonest mistake is a taken for b: 25 of 50.")
    assert "no mistake" in page.Page().failures(metrics.Scorer().details(rows(200)))


def test_examples_begin_with_mistakes_and_have_evidence():
    told = rows(190, evidence=[(0, 1, 1.0)])
    found = examples([*rows(5, number=5), *told])
    assert [one.gold == one.predicted for one in found] == [False] * 3 + [True] * 3


spans = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 8), st.floats(-2, 2, allow_nan=False))
)


@given(st.text(max_size=30), spans)
def test_pieces_make_up_the_text(text, found):
    evidence = [(start, start + length, weight) for start, length, weight in found]
    cut = pieces(text, evidence)
    assert "".join(piece.text for piece in cut) == text
    assert all(0 <= piece.depth <= 62 for piece in cut)
