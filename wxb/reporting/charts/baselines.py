"""Baselines in a comparison: rows with a score and an interval, but without tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wxb.reporting.charts.formatting import in_words, listed, rounded
from wxb.reporting.charts.scores import headline, is_worse

NAMED = 3  # experiments that a sentence names; more are counted


def is_baseline(system: Mapping[str, Any]) -> bool:
    """Whether a system of a comparison is a baseline."""
    return "baseline" in system


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


def behind_baseline(comparison: Mapping[str, Any]) -> str:
    """Which trained experiments have no better score than the best baseline; empty if all have.

    It compares the headline scores as they are: baselines are in no test.
    """
    metric, names = headline(comparison), trained(comparison)
    scores = {name: row[metric.key]["value"] for name, row in comparison["systems"].items()}
    baselines = [name for name in scores if name not in names]
    if not baselines:
        return ""
    best = (min if metric.lower_is_better else max)(baselines, key=lambda name: scores[name])
    behind = [name for name in names if not is_worse(scores[best], scores[name], metric)]
    if not behind:
        return ""
    who = listed(behind)
    if len(behind) > NAMED:
        who = f"{'all ' if behind == names else ''}{in_words(len(behind))} experiments".capitalize()
    verb = "is" if len(behind) == 1 else "are"
    score = f"{metric.title} {rounded(scores[best], metric)}"
    return f"{who} {verb} not ahead of the baseline {best} ({score})."
