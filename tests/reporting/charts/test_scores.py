import pytest
from hypothesis import given
from hypothesis import strategies as st

from wxb.metrics import Metric
from wxb.reporting.charts.scores import goodness, headline, is_worse, metrics

CER = Metric("cer", "CER", lower_is_better=True, scale=None)
BLEU = Metric("bleu", "BLEU", scale=100.0, decimals=1)


def test_metrics_come_back_from_json():
    content = {"metrics": {"bleu": BLEU._asdict(), "cer": CER._asdict()}, "headline": "cer"}
    assert metrics(content) == {"bleu": BLEU, "cer": CER}
    assert headline(content) == CER


@pytest.mark.parametrize(("value", "worse"), [(0.4, False), (0.5, False), (0.6, True)])
def test_worse_is_higher_if_lower_is_better(value, worse):
    assert is_worse(value, 0.5, CER) is worse
    assert is_worse(1 - value, 0.5, BLEU) is worse


@given(st.lists(st.floats(0, 100), min_size=2), st.sampled_from([CER, BLEU]))
def test_goodness_grows_with_the_score(values, metric):
    best_last = sorted(values, reverse=metric.lower_is_better)
    good = [goodness(value, metric, values) for value in best_last]
    assert good == sorted(good)
    assert 0 <= good[0] <= good[-1] <= 1
