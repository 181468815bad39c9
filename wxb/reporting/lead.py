"""The summary that begins a study's page: sentences made from its numbers alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from wxb.metrics import TEST, Metric
from wxb.reporting.charts import pairs
from wxb.reporting.charts.formatting import amount, duration, in_words, listed, rounded
from wxb.reporting.charts.pairs import Pair
from wxb.reporting.charts.parts import Page
from wxb.reporting.charts.scores import headline, is_worse
from wxb.reporting.costs import Costs


class Lead(NamedTuple):
    """The conclusion of a study and its support, each empty if there is nothing to say."""

    claim: str
    further: str  # on the other test sets
    noise: str
    cost: str
    failures: str


def lead(comparison: Mapping[str, Any], costs: Costs, task: Page) -> Lead:
    """The summary of a study from its comparison, the measured costs and its task."""
    systems, metric = comparison["systems"], headline(comparison)
    best, leads = _best(comparison)
    low, high = (rounded(systems[best][metric.key][end], metric) for end in ("low", "high"))
    return Lead(
        claim=pairs.claim(comparison),
        further=" ".join(_further(comparison, task.USABLE_SCORE)),
        noise=" ".join(
            [
                f"The 95% interval of {best} is {low} to {high}.",
                *_behind(leads, metric),
                *filter(None, [pairs.groups_warning(comparison)]),
            ]
        ),
        cost=_cost(comparison, costs, best, leads),
        failures=task.failures(systems[best]),
    )


def _further(comparison: Mapping[str, Any], usable: float | None) -> Iterator[str]:
    """The best experiments on each other test set, and their change from test."""
    metric = headline(comparison)
    for name, other in comparison["further"].items():
        best = pairs.leaders(other)
        values = [other["systems"][system][metric.key]["value"] for system in best]
        if usable is not None and all(is_worse(value, usable, metric) for value in values):
            yield f"No experiment is usable on {name}."
        scores = f"{pairs.format_scores(other, best)}{_change(comparison, best, values)}"
        if len(best) > 1:
            many = f"{in_words(len(best))} experiments"
            who = listed(best) if len(best) <= pairs.NAMED else many
            yield f"On {name}, no difference was found between {who} ({scores})."
        else:
            verb = "is best with" if len(other["systems"]) > 1 else "has"
            yield f"On {name}, {best[0]} {verb} {scores}."


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


def _best(comparison: Mapping[str, Any]) -> tuple[str, list[Pair]]:
    """The best experiment, and its lead over each of the others, the next best first."""
    tested = pairs.corrected_pairs(comparison)
    best, *others = pairs.ranking(tested) or list(comparison["systems"])
    leads = pairs.pairs_by_names(tested)
    return best, [leads[best, other] for other in others]


def _behind(leads: Sequence[Pair], metric: Metric) -> list[str]:
    """How far the others are behind the best, and whether beyond noise."""
    if not leads:
        return []
    second, *rest = leads
    corrected = f", Holm {second.corrected:.3f}" if rest else ""
    value, low, high = (rounded(end, metric) for end in (second.value, second.low, second.high))
    sentences = [
        f"{second.b} is {value} behind (95% interval {low} to {high},"
        f" p = {second.p_value:.3f}{corrected}), {_side(second)} noise."
    ]
    values = [rounded(pair.value, metric) for pair in rest]
    if len(rest) == 1:
        sentences.append(f"{rest[0].b} is {values[0]} behind, {_side(rest[0])} noise.")
    elif rest:
        beyond = sum(pair.beyond_noise for pair in rest)
        share = {0: "all within", len(rest): "all beyond"}.get(
            beyond, f"{in_words(beyond)} of them beyond"
        )
        sentences.append(
            f"The other {in_words(len(rest))} are {values[0]} to {values[-1]} behind,"
            f" {share} noise."
        )
    return sentences


def _side(pair: Pair) -> str:
    return "beyond" if pair.beyond_noise else "within"


def _cost(comparison: Mapping[str, Any], costs: Costs, best: str, leads: Sequence[Pair]) -> str:
    """The training cost of the best, and of the cheapest within noise or else of all others."""
    systems = comparison["systems"]
    seconds = _comparable_seconds(systems, costs)
    parameters = {name: system["trainable_parameters"] for name, system in systems.items()}
    price = seconds or parameters

    def trains(name: str) -> str:
        time = f" in {duration(seconds[name])}" if seconds else ""
        return f"trains {amount(parameters[name])} parameters{time}"

    sentence = f"{best} {trains(best)}."
    level = [pair for pair in leads if not pair.beyond_noise]
    rivals = {pair.b: pair.value for pair in level or leads}
    if not rivals:
        return sentence
    which = "experiment within noise" if level else "other experiment"
    cheapest = min(rivals, key=lambda name: price[name])
    if price[best] <= price[cheapest]:
        return f"{sentence} No {which} is cheaper."
    behind = "" if level else f", {rounded(rivals[cheapest], headline(comparison))} behind"
    return f"{sentence} The cheapest {which} is {cheapest}{behind}: it {trains(cheapest)}."


def _comparable_seconds(names: Iterable[str], costs: Costs) -> dict[str, float]:
    """Seconds of training by experiment; empty unless one machine trained them all."""
    by_name = {name: costs.get(f"train@{name}") for name in names}
    measured = {name: cost for name, cost in by_name.items() if cost is not None}
    if len(measured) < len(by_name) or len({cost["device"] for cost in measured.values()}) > 1:
        return {}
    return {name: cost["seconds"] for name, cost in measured.items()}
