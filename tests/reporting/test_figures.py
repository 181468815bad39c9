import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wxb.reporting import figures

SCORES = {
    "a": {"value": 0.5, "low": 0.25, "high": 0.625},
    "b": {"value": 0.75, "low": 0.5, "high": 1.0},
}


def luminance(colour: str) -> float:
    """Relative luminance as WCAG defines it."""
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("colour", [*figures.SERIES, *figures.OUTCOMES.values()])
@pytest.mark.parametrize("paper", ["#ffffff", "#15171b"])
def test_colours_are_legible_in_both_schemes(colour, paper):
    dark, light = sorted((luminance(colour), luminance(paper)))
    assert (light + 0.05) / (dark + 0.05) >= 3


def test_forest_draws_each_interval_from_low_to_high():
    for trace, score in zip(figures.forest(SCORES).data, SCORES.values(), strict=True):
        (value,), (up,), (down,) = trace.x, trace.error_x.array, trace.error_x.arrayminus
        assert (value - down, value, value + up) == (score["low"], score["value"], score["high"])


def test_types_are_sorted_by_support_then_name():
    f1 = {"RARE": 0.1, "B": 0.2, "A": 0.3}
    figure = figures.by_type({"x": f1}, {"RARE": 1, "B": 1200, "A": 1200})
    assert figure.data[0].y == ("A (1,200)", "B (1,200)", "RARE (1)")
    assert figure.data[0].x == (0.3, 0.2, 0.1)
    top, bottom = figure.layout.yaxis.range[::-1]
    assert top < bottom  # the axis runs downwards


def test_stacked_leaves_a_gap_for_what_was_not_measured():
    rows = {"a": {"train": 3}, "b": {"pretrain": 2, "train": 1}}
    figure = figures.stacked(rows, {"pretrain": "#000000", "train": "#ffffff"}, title="seconds")
    assert [bar.x for bar in figure.data] == [(0, 2), (3, 1)]


def test_curves_of_one_series_share_a_colour():
    points = [(1, 2.0), (2, 1.0)]
    lines = [figures.Line("a", 0, points), figures.Line("b", 1, points)]
    first, second, dashed = figures.curves(
        [*lines, figures.Line("a, valid", 0, points, True)], title="loss"
    ).data
    assert first.line.color == dashed.line.color != second.line.color
    assert (first.line.dash, dashed.line.dash) == ("solid", "dash")


def test_more_experiments_than_colours():
    assert figures.colour(len(figures.SERIES)) == figures.colour(0)
    assert figures.symbol(len(figures.SYMBOLS)) == figures.symbol(0)


@given(st.floats() | st.just(float("nan")))
def test_plain_is_strict_json(value):
    lines = [figures.Line("a", 0, [(1, value)])]
    json.dumps(figures.plain(figures.curves(lines, title="loss")), allow_nan=False)


def test_figures_bring_no_background_of_their_own():
    layout = figures.plain(figures.forest(SCORES))["layout"]
    assert layout["paper_bgcolor"] == layout["plot_bgcolor"] == "rgba(0,0,0,0)"
    assert "color" not in json.dumps(layout["template"])
