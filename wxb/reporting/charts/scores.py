"""The metrics of a comparison (wxb/metrics/evaluation.py), and how good a value is on any scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wxb.metrics import Metric


def metrics(comparison: Mapping[str, Any]) -> dict[str, Metric]:
    """The metrics of a comparison by their keys, in the order of tables."""
    return {key: Metric(**fields) for key, fields in comparison["metrics"].items()}


def headline(comparison: Mapping[str, Any]) -> Metric:
    """The metric by which systems are ranked and tested."""
    return metrics(comparison)[comparison["headline"]]


def is_worse(value: float, bound: float, metric: Metric) -> bool:
    """Whether a value of a metric is worse than a bound."""
    return value > bound if metric.lower_is_better else value < bound


def goodness(value: float, metric: Metric, values: Sequence[float] = ()) -> float:
    """A metric value rescaled to [0, 1], where 1 is best.

    Metrics without a largest value are rescaled by `values`: 0 is the worst of them, 1 the best.
    """
    low, high = (0.0, metric.scale) if metric.scale else (min(values), max(values))
    share = min(1.0, max(0.0, (value - low) / (high - low))) if high > low else 1.0
    return 1 - share if metric.lower_is_better and high > low else share
