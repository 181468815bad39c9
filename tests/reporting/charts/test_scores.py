"""The metrics of a comparison, and the shades of its scores."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reporting.conftest import BLEU, CER, with_baselines
from wxb.reporting.charts.parts import DEEPEST, shaded
from wxb.reporting.charts.scores import (
    goodness,
    headline,
    is_better,
    metrics,
    trained,
    without_baselines,
)


def shade(*arguments):
    return shaded(*arguments).shade


def test_metrics_come_back_from_json():
    content = {"metrics": {"bleu": BLEU._asdict(), "cer": CER._asdict()}, "headline": "cer"}
    assert metrics(content) == {"bleu": BLEU, "cer": CER}
    assert headline(content) == CER


@pytest.mark.parametrize(("value", "better"), [(0.4, True), (0.5, False), (0.6, False)])
def test_better_is_lower_if_lower_is_better(value, better):
    assert is_better(value, 0.5, CER) is better
    assert is_better(1 - value, 0.5, BLEU) is better


def test_baselines_are_left_out():
    made = with_baselines({"a": 0.9, "b": 0.5}, {"copy": 0.95})
    made["further"] = {"other": with_baselines({"a": 0.9, "b": 0.5}, {"copy": 0.95})}
    assert trained(made) == ["a", "b"]
    rest = without_baselines(made)
    assert [*rest["systems"]] == [*rest["further"]["other"]["systems"]] == ["a", "b"]


@given(st.lists(st.floats(0, 100), min_size=2), st.sampled_from([CER, BLEU]))
def test_goodness_grows_with_the_score(values, metric):
    best_last = sorted(values, reverse=metric.lower_is_better)
    good = [goodness(value, metric, values) for value in best_last]
    assert good == sorted(good)
    assert 0 <= good[0] <= good[-1] <= 1


@given(st.floats(0, 1), st.floats(0, 1))
def test_shade_grows_with_the_score(a, b):
    low, high = sorted((a, b))
    assert 0 <= shade(low) <= shade(high) <= DEEPEST


def test_shade_separates_good_systems_on_the_scale_of_the_metric():
    assert shade(0.9) - shade(0.8) > 2 * (shade(0.4) - shade(0.3))
    assert [shade(value, BLEU) for value in (0, 90, 100)] == [shade(0), shade(0.9), DEEPEST]
    error = CER._replace(scale=1.0)
    assert [shade(value, error) for value in (0.0, 0.5, 1.0)] == [DEEPEST, shade(0.5), 0]


def test_shade_of_a_metric_without_a_largest_value_depends_on_the_other_scores():
    scores = [0.25, 1.25, 0.75]
    assert [shade(value, CER, scores) for value in scores] == [DEEPEST, 0, shade(0.5)]
    higher = CER._replace(lower_is_better=False)
    assert [shade(value, higher, scores) for value in scores] == [0, DEEPEST, shade(0.5)]
    assert shade(0.3, CER, [0.3]) == DEEPEST
