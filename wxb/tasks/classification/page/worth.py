"""The first sentence of a page: whether a neural network is worth its cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup, escape

from wxb.reporting.charts import pairs
from wxb.reporting.charts.baselines import trained
from wxb.reporting.charts.formatting import amount, duration, rounded
from wxb.reporting.charts.parts import Study
from wxb.reporting.charts.scores import headline

BASELINE = "tfidf"  # the method without a network


def sentence(study: Study) -> Markup:
    """Whether the best network beats the best baseline beyond noise, and what both cost.

    Empty if the study has no network or no baseline.
    """
    comparison, experiments = study.comparison, study.params.experiments
    metric, systems = headline(comparison), comparison["systems"]
    names = trained(comparison)
    baselines = [name for name in names if experiments[name].method == BASELINE]
    networks = [name for name in names if experiments[name].method != BASELINE]
    if not baselines or not networks:
        return Markup("")
    network, baseline = (
        max(members, key=lambda name: systems[name][metric.key]["value"])
        for members in (networks, baselines)
    )
    pair = pairs.pairs_by_names(pairs.corrected_pairs(comparison))[network, baseline]
    is_worth_it = pair.beyond_noise and pair.value > 0
    difference = f"{rounded(abs(pair.value), metric)} {'above' if pair.value > 0 else 'below'}"
    return escape(
        f"A neural network is {'' if is_worth_it else 'not '}worth it here:"
        f" {network if is_worth_it else f'the best, {network},'} is {difference} {baseline} in"
        f" {metric.title}, {'beyond' if pair.beyond_noise else 'within'} noise"
        f"{_costs(study.costs, network, baseline)}."
    )


def _costs(costs: Mapping[str, Any], network: str, baseline: str) -> str:
    """Times of training and speeds of both, as clauses; empty without measurements."""
    clauses = []
    training = [costs.get(f"train@{name}") for name in (network, baseline)]
    if all(training):
        slow, fast = (duration(cost["seconds"]) for cost in training if cost)
        clauses.append(f"training takes {slow} against {fast}")
    evaluation = [costs.get(f"evaluate@{name}", {}) for name in (network, baseline)]
    if all(cost.get("predicting") for cost in evaluation):
        slow, fast = (amount(cost["inputs"] / cost["predicting"]) for cost in evaluation)
        clauses.append(f"it classifies {slow} texts a second against {fast}")
    return f"; {', '.join(clauses)}" if clauses else ""
