import pytest
from sacrebleu.metrics import CHRF

from wxb.metrics import evaluation
from wxb.reporting.tables import headline_table
from wxb.tasks.chat import metrics
from wxb.tasks.chat.metrics import PredictionRow, distinct_n

ROWS = [
    PredictionRow("1", "q", "cold", "Cold.", "opposite", "text", True),
    PredictionRow("2", "q", "7", "seven", "addition", "number", True),
    PredictionRow("3", "q", "8", "9", "addition", "number", False),
    PredictionRow("4", "q", "A long answer of words.", "A long reply of words.", None, None, True),
]


@pytest.mark.filterwarnings("error")
def test_no_rows_have_no_score():
    scores = metrics.Scorer().scores(metrics.Scorer().sums([]))
    assert scores["ended"] == scores["exact"] == 0


def test_scores_are_those_of_the_rows():
    scores = metrics.Scorer().scores(metrics.Scorer().sums(ROWS))
    assert scores["exact"] == pytest.approx(1 / 3)
    assert scores["format"] == pytest.approx(2 / 3)
    assert scores["ended"] == pytest.approx(3 / 4)
    texts = [[row.predicted for row in ROWS], [[row.gold for row in ROWS]]]
    assert scores["chrf"] == pytest.approx(CHRF().corpus_score(*texts).score)


def test_chrf_ranks_replies_that_cannot_be_checked():
    scorer, free = metrics.Scorer(), ROWS[3:]
    assert scorer.headline(scorer.sums(ROWS)).key == "exact"
    results = evaluation.evaluate(scorer, [free * 4])
    assert [key for key in evaluation.metrics(scorer, results) if "_low" in key] == ["chrf_low"]
    comparison = evaluation.compare(scorer, {"a": {"test": results}, "b": {"test": results}})
    assert (comparison["headline"], comparison["support"]) == ("chrf", 4)
    assert ([*comparison["metrics"]], comparison["counts"]) == (["chrf", "ended"], {})


def test_each_test_set_has_its_own_headline():
    scorer = metrics.Scorer()
    sets = {
        "test": evaluation.evaluate(scorer, [ROWS]),
        "talk": evaluation.evaluate(scorer, [ROWS[3:]]),
    }
    comparison = {**evaluation.compare(scorer, {"a": sets}), "seeds": [1], "question": None}
    assert [t.partition(" (")[0] for t in headline_table(comparison).header[1:]] == [
        "exact match",
        "talk: chrF",
    ]


def test_details_by_kind():
    details = metrics.Scorer().details(ROWS)
    assert details["by_kind"]["addition"] == {"exact": 0.0, "format": 0.5, "support": 2}
    assert (details["correct"], details["in_format"], details["support"]) == (1, 2, 3)


def test_distinct_n():
    assert distinct_n(["a b a", "b"], 1) == 0.5
    assert distinct_n(["a b a", "b"], 2) == 1.0
    assert distinct_n(["貓貓狗"], 1) == pytest.approx(2 / 3, abs=1e-6)
    assert distinct_n([""], 2) == 0.0
