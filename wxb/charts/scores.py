"""Scores of a comparison (wxb/metrics/evaluation.py) as people read them, on any scale."""

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


def told(value: float, metric: Metric) -> str:
    """A value, or a difference of two, with as many decimals as the metric is told with."""
    return f"{value:z.{metric.decimals}f}"


def signed(difference: float, metric: Metric) -> str:
    """A difference of two values with its sign, or without one where it rounds to 0."""
    shown = f"{difference:+.{metric.decimals}f}"
    return shown if float(shown) else told(difference, metric)


def interval(score: Mapping[str, float], metric: Metric) -> str:
    """The ends of a score's interval."""
    return f"{told(score['low'], metric)}–{told(score['high'], metric)}"


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
