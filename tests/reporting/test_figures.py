import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reporting.conftest import BLEU, CER, F1, contrast
from wxb.reporting import figures

SCORES = {
    "a": {"value": 0.5, "low": 0.25, "high": 0.625},
    "b": {"value": 0.75, "low": 0.5, "high": 1.0},
}


@pytest.mark.parametrize("colour", [*figures.SERIES, *figures.ERRORS, figures.OTHERS])
@pytest.mark.parametrize("paper", ["#ffffff", "#15171b"])
def test_colours_are_legible_in_both_schemes(colour, paper):
    assert contrast(colour, paper) >= 3


def test_forest_draws_each_interval_from_low_to_high():
    forest = figures.forest(F1, {"test": SCORES}, figures.chips(SCORES))
    for trace, score in zip(forest.data, SCORES.values(), strict=True):
        (value,), (up,), (down,) = trace.x, trace.error_x.array, trace.error_x.arrayminus
        assert (value - down, value, value + up) == (score["low"], score["value"], score["high"])


def test_forest_has_a_marker_of_each_test_set_in_the_rows_of_experiments_and_grey_baselines():
    sets = {"test": SCORES, "new": {**SCORES, "a": {"value": 0.25, "low": 0.2, "high": 0.3}}}
    *ours, other, _ = figures.forest(F1, sets, figures.chips(SCORES, ["b"])).data
    assert [trace.marker.symbol for trace in ours] == [figures.symbol(0)] * 2
    assert [trace.marker.color for trace in ours] == [figures.colour(0), figures.OTHERS]
    assert other.marker.symbol == f"{figures.symbol(1)}-open"
    assert other.marker.color == ours[0].marker.color
    assert (other.x, other.error_x.array) == ((0.25,), (pytest.approx(0.05),))
    assert ours[0].y[0] < 0 < other.y[0] < 0.5


def test_forest_has_an_arrow_for_a_score_below_half_of_the_best():
    scores = {"b": SCORES["b"], "c": {"value": 0.37, "low": 0.3, "high": 0.4}}
    for metric, x, text in ((F1, 0.5, "◂ 0.370"), (CER, 0.37, "")):
        traces = figures.forest(metric, {"test": scores}, figures.chips(scores)).data
        assert [(t.x[0], t.text) for t in traces] == [(0.75, ""), (x, text)]


def test_ten_experiments_and_all_errors_have_their_own_colour():
    assert len({*figures.SERIES, *figures.ERRORS, figures.OTHERS}) == 10 + 5 + 1
    assert len({*figures.chips(map(str, range(40))).values()}) == 40


@pytest.mark.parametrize(
    ("metric", "title", "hover"),
    [
        (F1, "F1", "F1 0.500 (0.250–0.625)"),
        (CER, "CER (lower is better)", "CER 0.500 (0.250–0.625)"),
        (BLEU, "BLEU", "BLEU 0.5 (0.2–0.6)"),
    ],
)
def test_axes_and_markers_show_the_metric_with_its_title_and_decimals(metric, title, hover):
    forest = figures.forest(metric, {"test": SCORES}, figures.chips(SCORES))
    assert forest.layout.xaxis.title.text == title
    assert hover in forest.data[0].hovertemplate


@given(st.floats() | st.just(float("nan")))
def test_figures_are_strict_json(value):
    lines = [figures.Line("a", 0, [(1, value)])]
    json.dumps(figures.json_object(figures.curves(lines, y_title="loss")), allow_nan=False)
