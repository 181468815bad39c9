import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reporting.charts.colours import contrast
from wxb.metrics import Metric
from wxb.reporting.charts import figures
from wxb.reporting.charts.parts import DEEPEST

STYLE = Path(figures.__file__).with_name("templates").joinpath("style.css").read_text()

F1 = Metric("f1", "F1")
CER = Metric("cer", "CER", lower_is_better=True, scale=None)
BLEU = Metric("bleu", "BLEU", scale=100.0, decimals=1)
SCORES = {
    "a": {"value": 0.5, "low": 0.25, "high": 0.625},
    "b": {"value": 0.75, "low": 0.5, "high": 1.0},
}


@pytest.mark.parametrize("colour", [*figures.SERIES, figures.OTHERS])
@pytest.mark.parametrize("paper", ["#ffffff", "#15171b"])
def test_colours_are_legible_in_both_schemes(colour, paper):
    assert contrast(colour, paper) >= 3


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("fill", figures.SERIES[:2])
def test_text_is_legible_on_the_deepest_shade(fill, scheme):
    paper, ink = (re.findall(rf"--{name}: (#\w+)", STYLE)[scheme] for name in ("paper", "ink"))
    paper = paper if len(paper) == 7 else "#" + "".join(digit * 2 for digit in paper[1:])
    mixed = [
        round(
            (DEEPEST * int(fill[i : i + 2], 16) + (100 - DEEPEST) * int(paper[i : i + 2], 16)) / 100
        )
        for i in (1, 3, 5)
    ]
    assert f"--c: {fill}" in STYLE
    assert contrast("#" + "".join(f"{part:02x}" for part in mixed), ink) >= 4.5


def test_forest_draws_each_interval_from_low_to_high():
    for trace, score in zip(figures.forest(F1, SCORES).data, SCORES.values(), strict=False):
        (value,), (up,), (down,) = trace.x, trace.error_x.array, trace.error_x.arrayminus
        assert (value - down, value, value + up) == (score["low"], score["value"], score["high"])


def test_forest_has_hollow_markers_in_the_rows_of_their_experiments():
    further = {"new": {"a": {"value": 0.25, "low": 0.2, "high": 0.3}}}
    *ours, other = figures.forest(F1, SCORES, further).data
    assert [trace.marker.symbol for trace in ours] == [figures.symbol(0), figures.symbol(1)]
    assert other.marker.symbol == f"{figures.symbol(0)}-open"
    assert other.marker.color == ours[0].marker.color
    assert (other.x, other.y, other.error_x.array) == ((0.25,), ours[0].y, None)


def test_baselines_are_grey_in_charts_and_legends():
    legend = {name: chip.colour for name, chip in figures.chips(SCORES, ["b"]).items()}
    assert legend == {"a": figures.colour(0), "b": figures.OTHERS}
    prices = dict.fromkeys(SCORES, 1.0)
    price = figures.tradeoff(F1, SCORES, prices, x_title="seconds", grey=["b"])
    (_, line) = figures.curves(
        [figures.Line("a", 0, [(1, 0.5)]), figures.Line("b", 1, [(1, 0.5)], grey=True)], y_title=""
    ).data
    traces = [figures.forest(F1, SCORES, grey=["b"]).data[1], price.data[1]]
    assert {line.line.color, *(trace.marker.color for trace in traces)} == {figures.OTHERS}


def test_tradeoff_keeps_markers_and_leaves_out_experiments_without_a_price():
    (only,) = figures.tradeoff(F1, SCORES, {"b": 100.0}, x_title="seconds").data
    assert (only.x, only.y) == ((100.0,), (0.75,))
    assert only.marker.symbol == figures.symbol(1)
    assert not figures.tradeoff(F1, SCORES, {}, x_title="seconds").data
    assert not figures.tradeoff(F1, SCORES, {"a": 0}, x_title="seconds").data


@pytest.mark.parametrize(
    ("metric", "title", "hover"),
    [
        (F1, "F1", "F1 0.500 (0.250–0.625)"),
        (CER, "CER (lower is better)", "CER 0.500 (0.250–0.625)"),
        (BLEU, "BLEU", "BLEU 0.5 (0.2–0.6)"),
    ],
)
def test_axes_and_markers_show_the_metric_with_its_title_and_decimals(metric, title, hover):
    forest = figures.forest(metric, SCORES)
    assert forest.layout.xaxis.title.text == title
    assert hover in forest.data[0].hovertemplate
    price = figures.tradeoff(metric, SCORES, {"a": 1.0}, x_title="seconds")
    assert price.layout.yaxis.title.text == title
    assert hover in price.data[0].hovertemplate


@given(st.lists(st.floats(1e-3, 1e12), min_size=2, max_size=2))
def test_log_axis_shows_every_point_and_has_ticks(prices):
    axis = figures.tradeoff(
        F1, SCORES, dict(zip("ab", prices, strict=True)), x_title=""
    ).layout.xaxis
    low, high = axis.range
    assert low < math.log10(min(prices))
    assert math.log10(max(prices)) < high
    assert 1 <= len(axis.tickvals) <= 20
    assert all(low <= math.log10(tick) <= high for tick in axis.tickvals)


@given(st.text("ab-<&", max_size=60))
def test_wrapped_labels_are_complete_and_break_after_hyphens(name):
    lines = figures.wrap_label(name).split("<br>")
    assert "".join(lines) == figures.escape_label(name)
    assert all(line.endswith("-") for line in lines[:-1])


def test_long_labels_are_wrapped():
    assert figures.wrap_label("ner-decoder-bidirectional") == "ner-decoder-<br>bidirectional"
    assert figures.wrap_label("ner-decoder-qlora") == "ner-decoder-qlora"


def test_stacked_bars_leave_a_gap_for_missing_parts():
    rows = {"a": {"train": 3}, "b": {"pretrain": 2, "train": 1}}
    figure = figures.stacked(rows, {"pretrain": "#000000", "train": "#ffffff"}, x_title="seconds")
    assert [bar.x for bar in figure.data] == [(0, 2), (3, 1)]


def test_a_matrix_labels_as_many_names_as_are_legible_or_all():
    values, names = np.eye(50), [str(number) for number in range(50)]
    few = figures.matrix(values, names, names, names=("row", "column"))
    every = figures.matrix(values, names, names, names=("row", "column"), every=True)
    assert few.layout.xaxis.ticktext == tuple(names[::3])
    assert every.layout.xaxis.ticktext == every.layout.yaxis.ticktext == tuple(names)
    assert few.layout.height == 300 < 50 * figures.LABEL < every.layout.height


def test_curves_of_one_series_share_a_colour():
    points = [(1, 2.0), (2, 1.0)]
    lines = [figures.Line("a", 0, points), figures.Line("b", 1, points)]
    first, second, dashed = figures.curves(
        [*lines, figures.Line("a, valid", 0, points, True)], y_title="loss"
    ).data
    assert first.line.color == dashed.line.color != second.line.color
    assert (first.line.dash, dashed.line.dash) == ("solid", "dash")


def test_more_experiments_than_colours():
    assert figures.colour(len(figures.SERIES)) == figures.colour(0)
    assert figures.symbol(len(figures.SYMBOLS)) == figures.symbol(0)


@given(st.floats() | st.just(float("nan")))
def test_figures_are_strict_json(value):
    lines = [figures.Line("a", 0, [(1, value)])]
    json.dumps(figures.to_json(figures.curves(lines, y_title="loss")), allow_nan=False)


def test_figures_have_no_background():
    layout = figures.to_json(figures.forest(F1, SCORES))["layout"]
    assert layout["paper_bgcolor"] == layout["plot_bgcolor"] == "rgba(0,0,0,0)"
    assert "color" not in json.dumps(layout["template"])


def log(losses, stride, checkpoints):
    """The log of step losses: means since the previous point, at strides and checkpoints."""
    steps = sorted({*range(stride, len(losses) + 1, stride), *checkpoints, len(losses)})
    return [
        (step, sum(losses[before:step]) / (step - before))
        for before, step in zip([0, *steps], steps, strict=False)
    ]


@given(st.lists(st.floats(0, 9), min_size=4, max_size=60), st.integers(1, 4), st.data())
def test_checkpoints_leave_no_trace(losses, stride, data):
    whole = len(losses) - len(losses) % stride
    between = data.draw(st.sets(st.integers(stride, len(losses))))
    points = figures.smoothed(log(losses, stride, between))
    plain = log(losses[:whole], stride, ())
    assert [step for step, _ in points[:-1]] == [step for step, _ in plain[:-1]]
    assert [value for _, value in points[:-1]] == pytest.approx([value for _, value in plain[:-1]])
    tail = losses[whole - stride :]
    assert points[-1] == (len(losses), pytest.approx(sum(tail) / len(tail)))


def test_a_spike_of_few_steps_at_the_end_of_an_epoch_is_smoothed():
    assert figures.smoothed([(10, 2.0), (20, 1.5), (21, 9.0), (30, 1.0), (32, 0.0)]) == [
        (10, 2.0),
        (20, 1.5),
        (32, pytest.approx((9.0 + 9 * 1.0) / 12)),
    ]


@pytest.mark.parametrize(
    "points",
    [[], [(0, 1.0)], [(10, 2.5)], [(10, 2.5), (20, 1.25)], [(3, 2.0), (9, 1.0), (20, 0.5)]],
)
def test_regular_losses_and_losses_without_a_stride_are_unchanged(points):
    assert figures.smoothed(points) == points
