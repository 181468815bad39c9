"""The summary that begins a study's page: sentences made from its numbers alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from wxb.metrics import TEST
from wxb.reporting.charts import pairs
from wxb.reporting.charts.baselines import NAMED, behind_baseline, trained, without_baselines
from wxb.reporting.charts.formatting import amount, duration, in_words, listed, rounded
from wxb.reporting.charts.parts import Page
from wxb.reporting.charts.scores import headline, is_worse
from wxb.reporting.costs import Costs


class Lead(NamedTuple):
    """The conclusion of a study and its support, each empty if there is nothing to say."""

    claim: str
    baseline: str
    further: str  # on the other test sets
    noise: str
    cost: str
    failures: str


def lead(comparison: Mapping[str, Any], costs: Costs, task: Page) -> Lead:
    """The summary of a study from its comparison, the measured costs and its task."""
    best, baseline = pairs.leaders(comparison), behind_baseline(comparison)
    failures = task.failures(comparison["systems"][best[0]])
    return Lead(
        claim=pairs.claim(comparison).removesuffix(baseline).rstrip(),
        baseline=baseline,
        further=" ".join(filter(None, _further(comparison, task.USABLE_SCORE))),
        noise=" ".join([_noise(comparison), *filter(None, [pairs.groups_warning(comparison)])]),
        cost=_cost(without_baselines(comparison), costs, best),
        failures=failures and f"{best[0]}: {failures}",
    )


def _noise(comparison: Mapping[str, Any]) -> str:
    """How many differences are beyond noise; of one experiment, its interval."""
    tests = pairs.corrected_pairs(comparison)
    if not tests:
        (name,) = trained(comparison)
        system = comparison["systems"][name]
        metric = headline(comparison)
        low, high = (rounded(system[metric.key][end], metric) for end in ("low", "high"))
        return f"The 95% interval of {name} is {low} to {high}."
    if len(tests) == 1:
        return pairs.verdicts(comparison)[0]
    return pairs.beyond_noise(comparison)


def _further(comparison: Mapping[str, Any], usable: float | None) -> Iterator[str]:
    """The best experiments on each other test set, and their change from test."""
    metric = headline(comparison)
    for name, other in comparison["further"].items():
        best = pairs.leaders(other)
        values = [other["systems"][system][metric.key]["value"] for system in best]
        if usable is not None and all(is_worse(value, usable, metric) for value in values):
            yield f"No experiment is usable on {name}."
        scores = f"{pairs.score_range(other, best)}{_change(comparison, best, values)}"
        if pairs.groups_warning(other):
            few = f"the number of groups ({other['groups']}) is too low"
            yield f"On {name}, {few} to compare experiments ({scores})."
        elif len(best) > 1:
            many = f"{in_words(len(best))} experiments"
            who = listed(best) if len(best) <= NAMED else many
            yield f"On {name}, no difference was found between {who} ({scores})."
        else:
            verb = "is best with" if len(trained(other)) > 1 else "has"
            yield f"On {name}, {best[0]} {verb} {scores}."
        yield behind_baseline(other)


def _change(comparison: Mapping[str, Any], names: Sequence[str], values: Sequence[float]) -> str:
    """How far values are below or above those of the same experiments on test; or empty if both."""
    metric = headline(comparison)
    on_test = [comparison["systems"][name][metric.key]["value"] for name in names]
    drops = [before - value for before, value in zip(on_test, values, strict=True)]
    if min(drops) < 0 < max(drops):
        return ""
    sizes = dict.fromkeys(rounded(size, metric) for size in sorted(map(abs, drops)))
    ends = " to ".join(dict.fromkeys([*list(sizes)[:1], *list(sizes)[-1:]]))
    whose = "their" if len(names) > 1 else "its"
    return f", {ends} {'below' if max(drops) > 0 else 'above'} {whose} {metric.title} on {TEST}"


def _cost(comparison: Mapping[str, Any], costs: Costs, best: Sequence[str]) -> str:
    """The training cost of the cheapest of the best, and of the cheapest if that is another."""
    systems = comparison["systems"]
    seconds = _comparable_seconds(systems, costs)
    parameters = {name: system["trainable_parameters"] for name, system in systems.items()}
    price = seconds or parameters

    def trains(name: str) -> str:
        time = f" in {duration(seconds[name])}" if seconds else ""
        return f"trains {amount(parameters[name])} parameters{time}"

    cheapest = min(best, key=price.__getitem__)
    trains_any = [name for name in systems if parameters[name]]
    cheapest_of_all = min(trains_any, key=price.__getitem__, default=cheapest)
    sentence = f"{cheapest} {trains(cheapest)}."
    if len(best) > 1:
        sentence = (
            f"The cheapest experiment that no other beats is {cheapest}: it {trains(cheapest)}."
        )
    if price[cheapest_of_all] < price[cheapest]:
        sentence += f" {cheapest_of_all} is cheaper: it {trains(cheapest_of_all)}."
    return sentence


def _comparable_seconds(names: Iterable[str], costs: Costs) -> dict[str, float]:
    """Seconds of training by experiment; empty unless one machine trained them all."""
    by_name = {name: costs.get(f"train@{name}") for name in names}
    measured = {name: cost for name, cost in by_name.items() if cost is not None}
    if len(measured) < len(by_name) or len({cost["device"] for cost in measured.values()}) > 1:
        return {}
    return {name: cost["seconds"] for name, cost in measured.items()}
