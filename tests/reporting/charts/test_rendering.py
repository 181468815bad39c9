from hypothesis import given
from hypothesis import strategies as st

from wxb.metrics import Metric
from wxb.reporting.charts.rendering import DEEPEST, shade

CER = Metric("cer", "CER", lower_is_better=True, scale=None)
BLEU = Metric("bleu", "BLEU", scale=100.0, decimals=1)


@given(st.floats(0, 1), st.floats(0, 1))
def test_shade_grows_with_f1(a, b):
    low, high = sorted((a, b))
    assert 0 <= shade(low) <= shade(high) <= 100


def test_shade_separates_good_systems():
    assert shade(0.9) - shade(0.8) > 2 * (shade(0.4) - shade(0.3))


def test_shade_uses_the_scale_of_the_metric():
    assert [shade(value, BLEU) for value in (0, 90, 100)] == [shade(0), shade(0.9), DEEPEST]


def test_shade_is_deepest_for_the_lowest_value_if_lower_is_better():
    error = Metric("error", "error", lower_is_better=True)
    assert [shade(value, error) for value in (0.0, 0.5, 1.0)] == [DEEPEST, shade(0.5), 0]


def test_shade_of_a_metric_without_a_largest_value_depends_on_the_other_scores():
    scores = [0.25, 1.25, 0.75]
    assert [shade(value, CER, scores) for value in scores] == [DEEPEST, 0, shade(0.5)]
    higher = CER._replace(lower_is_better=False)
    assert [shade(value, higher, scores) for value in scores] == [0, DEEPEST, shade(0.5)]
    assert shade(0.3, CER, [0.3]) == DEEPEST
