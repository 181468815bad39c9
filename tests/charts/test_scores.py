import pytest
from hypothesis import given
from hypothesis import strategies as st

from wxb.charts.scores import below, goodness, headline, interval, metrics, signed, told
from wxb.metrics import Metric

CER = Metric("cer", "CER", lower_is_better=True, scale=None)
BLEU = Metric("bleu", "BLEU", scale=100.0, decimals=1)


def test_metrics_come_back_from_json():
    content = {"metrics": {"bleu": BLEU._asdict(), "cer": CER._asdict()}, "headline": "cer"}
    assert metrics(content) == {"bleu": BLEU, "cer": CER}
    assert headline(content) == CER


def test_values_have_the_decimals_of_their_metric():
    assert told(12.345, BLEU) == "12.3"
    assert interval({"value": 0.2, "low": 0.125, "high": 1.25}, CER) == "0.125–1.250"


@pytest.mark.parametrize(
    ("difference", "metric", "shown"),
    [
        (-1.25, CER, "-1.250"),
        (1.25, BLEU, "+1.2"),
        (0.0004, CER, "0.000"),
        (-0.0004, CER, "0.000"),
        (-0.0, BLEU, "0.0"),
    ],
)
def test_differences_have_a_sign_unless_they_round_to_nothing(difference, metric, shown):
    assert signed(difference, metric) == shown


@pytest.mark.parametrize(("value", "worse"), [(0.4, False), (0.5, False), (0.6, True)])
def test_below_is_above_where_less_is_better(value, worse):
    assert below(value, 0.5, CER) is worse
    assert below(1 - value, 0.5, BLEU) is worse


@given(st.lists(st.floats(0, 100), min_size=2), st.sampled_from([CER, BLEU]))
def test_the_better_is_never_less_good(values, metric):
    best_last = sorted(values, reverse=metric.lower_is_better)
    good = [goodness(value, metric, values) for value in best_last]
    assert good == sorted(good)
    assert 0 <= good[0] <= good[-1] <= 1
