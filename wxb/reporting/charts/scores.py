"""The metrics of a comparison (wxb/metrics/evaluation.py), and how good a value is on any scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wxb.metrics import Metric


def metrics(comparison: Mapping[str, Any]) -> dict[str, Metric]:
    """The scores of a comparison by their keys, in the order of tables."""
    return {key: Metric(**told) for key, told in comparison["metrics"].items()}


def headline(comparison: Mapping[str, Any]) -> Metric:
    """The score that systems are ranked and tested by."""
    return metrics(comparison)[comparison["headline"]]


def below(value: float, bound: float, metric: Metric) -> bool:
    """Whether a value is worse than the bound."""
    return value > bound if metric.lower_is_better else value < bound


def goodness(value: float, metric: Metric, shown: Sequence[float] = ()) -> float:
    """How good a value is, from 0 to 1: on the metric's scale.

    Where it has no largest value, the `shown` ones are the scale: the best of them is 1, the worst
    0.
    """
    low, high = (0.0, metric.scale) if metric.scale else (min(shown), max(shown))
    place = min(1.0, max(0.0, (value - low) / (high - low))) if high > low else 1.0
    return 1 - place if metric.lower_is_better and high > low else place
