"""The metrics and the systems of a comparison (wxb/metrics/evaluation.py).

Baselines are systems with scores and intervals, but without tests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wxb.metrics import TEST, Metric


def metrics(comparison: Mapping[str, Any]) -> dict[str, Metric]:
    """The metrics of a comparison by their keys, in the order of tables."""
    return {key: Metric(**fields) for key, fields in comparison["metrics"].items()}


def headline(comparison: Mapping[str, Any]) -> Metric:
    """The metric by which systems are ranked and tested."""
    return metrics(comparison)[comparison["headline"]]


def headline_scores(comparison: Mapping[str, Any]) -> dict[str, Mapping[str, float]]:
    """The headline score of each system, with the ends of its interval."""
    return {name: row[comparison["headline"]] for name, row in comparison["systems"].items()}


def test_sets(comparison: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The comparison on each test set, by its name."""
    return {TEST: comparison, **comparison["further"]}


def is_baseline(system: Mapping[str, Any]) -> bool:
    """Whether a system of a comparison is a baseline."""
    return "baseline" in system


def baselines(comparison: Mapping[str, Any]) -> list[str]:
    """The names of the baselines."""
    return [name for name, system in comparison["systems"].items() if is_baseline(system)]


def trained(comparison: Mapping[str, Any]) -> list[str]:
    """The experiments that are no baselines, in their order."""
    return [name for name, system in comparison["systems"].items() if not is_baseline(system)]


def without_baselines(comparison: Mapping[str, Any]) -> dict[str, Any]:
    """A comparison of the trained experiments only."""
    systems = {name: comparison["systems"][name] for name in trained(comparison)}
    further = comparison.get("further", {})
    return {
        **comparison,
        "systems": systems,
        "further": {name: without_baselines(other) for name, other in further.items()},
    }


def is_better(value: float, other: float, metric: Metric) -> bool:
    """Whether a value of a metric is better than another."""
    return value < other if metric.lower_is_better else value > other


def goodness(value: float, metric: Metric, values: Sequence[float] = ()) -> float:
    """A metric value rescaled to [0, 1], where 1 is best.

    Metrics without a largest value are rescaled by `values`: 0 is the worst of them, 1 the best.
    """
    low, high = (0.0, metric.scale) if metric.scale else (min(values), max(values))
    share = min(1.0, max(0.0, (value - low) / (high - low))) if high > low else 1.0
    return 1 - share if metric.lower_is_better and high > low else share
