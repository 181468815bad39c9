"""Whether a neural network is worth it here, in a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup, escape

from wxb.reporting.charts import pairs
from wxb.reporting.charts.formatting import amount, duration, rounded
from wxb.reporting.charts.parts import Study
from wxb.reporting.charts.scores import headline

COUNTING = "tfidf"  # the method that is no network


def sentence(study: Study) -> Markup:
    """The answer of a study that has both; empty where it has not."""
    experiments, systems = study.params.experiments, [*study.comparison["systems"]]
    ranked = pairs.ranking(pairs.results(study.comparison)) or systems
    counting = [name for name in ranked if experiments[name].method == COUNTING]
    networks = [name for name in ranked if experiments[name].method != COUNTING]
    if not counting or not networks:
        return Markup("")
    return escape(answer(study.comparison, study.costs, counting[0], networks[0]))


def answer(
    comparison: Mapping[str, Any], costs: Mapping[str, Any], counting: str, network: str
) -> str:
    """Whether the best network is beyond noise better than the best that counts words."""
    pair = pairs.between(pairs.results(comparison))[network, counting]
    metric = headline(comparison)
    apart = f"{rounded(abs(pair.value), metric)} {'above' if pair.value > 0 else 'below'}"
    spent = _spent(costs, network, counting)
    if not pair.beyond_noise:
        return (
            f"A neural network is not worth it here: the best, {network}, is {apart} {counting} in"
            f" {metric.title}, within noise{spent}."
        )
    if pair.value < 0:
        return (
            f"A neural network is not worth it here: the best, {network}, is {apart} {counting} in"
            f" {metric.title}, beyond noise{spent}."
        )
    return (
        f"A neural network is worth it here: {network} is {apart} {counting} in {metric.title},"
        f" beyond noise{spent}."
    )


def _spent(costs: Mapping[str, Any], network: str, counting: str) -> str:
    """What both take, as far as it was measured."""
    clauses = []
    trained = [costs.get(f"train@{name}") for name in (network, counting)]
    if all(trained):
        long, short = (duration(cost["seconds"]) for cost in trained if cost)
        clauses.append(f"training takes {long} and {short}")
    speeds = [costs.get(f"evaluate@{name}", {}) for name in (network, counting)]
    if all(cost.get("predicting") for cost in speeds):
        slow, fast = (amount(cost["inputs"] / cost["predicting"]) for cost in speeds)
        clauses.append(f"in a second it classifies {slow} texts and {fast}")
    return f"; {', '.join(clauses)}" if clauses else ""
