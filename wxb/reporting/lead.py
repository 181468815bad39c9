"""A study in a few plain sentences, made from its numbers alone.

Which experiment is best, whether that is beyond noise, what it costs, and where it fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from wxb.metrics import TEST, Metric
from wxb.reporting.charts import pairs
from wxb.reporting.charts.formatting import amount, duration, in_words, listed, rounded
from wxb.reporting.charts.pairs import Pair
from wxb.reporting.charts.parts import Page
from wxb.reporting.charts.scores import below, headline
from wxb.reporting.costs import Costs


class Lead(NamedTuple):
    """The claim, and what bears it out; what there is nothing to tell of is empty."""

    claim: str
    further: str
    noise: str
    cost: str
    failures: str


def lead(comparison: Mapping[str, Any], costs: Costs, task: Page) -> Lead:
    """The lead of a study of a task.

    `costs` are by stage, such as train@<experiment>, as far as measured.
    """
    systems, metric = comparison["systems"], headline(comparison)
    best, against = _best(comparison)
    low, high = (rounded(systems[best][metric.key][end], metric) for end in ("low", "high"))
    return Lead(
        claim=pairs.claim(comparison),
        further=" ".join(_further(comparison, task.USABLE)),
        noise=" ".join(
            [
                f"The 95% interval of {best} is {low} to {high}.",
                *_behind(against, metric),
                *filter(None, [pairs.too_few(comparison)]),
            ]
        ),
        cost=_cost(comparison, costs, best, against),
        failures=task.failures(systems[best]),
    )


def _further(comparison: Mapping[str, Any], usable: float | None) -> Iterator[str]:
    """The best experiments on each other test set, and how far they fall there."""
    metric = headline(comparison)
    for name, found in comparison["further"].items():
        first = pairs.leaders(found)
        values = [found["systems"][system][metric.key]["value"] for system in first]
        useless = usable is not None and all(below(value, usable, metric) for value in values)
        warning = "none can be relied on: " if useless else ""
        scores = f"{pairs.reached(found, first)}{_fall(comparison, first, values)}"
        if len(first) > 1:
            many = f"{in_words(len(first))} experiments"
            who = listed(first) if len(first) <= pairs.NAMED else many
            yield f"On {name} {warning}no difference was found between {who} ({scores})."
        else:
            verb = "is best with" if len(found["systems"]) > 1 else "has"
            yield f"On {name} {warning}{first[0]} {verb} {scores}."


def _fall(comparison: Mapping[str, Any], names: Sequence[str], values: Sequence[float]) -> str:
    """How far scores lie below or above those of the same experiments on test."""
    metric = headline(comparison)
    on_test = [comparison["systems"][name][metric.key]["value"] for name in names]
    falls = [there - value for there, value in zip(on_test, values, strict=True)]
    if min(falls) < 0 < max(falls):
        return ""
    sizes = dict.fromkeys(rounded(size, metric) for size in sorted(map(abs, falls)))
    ends = " to ".join(dict.fromkeys([*list(sizes)[:1], *list(sizes)[-1:]]))
    whose = "their" if len(names) > 1 else "its"
    return f", {ends} {'below' if max(falls) > 0 else 'above'} {whose} {metric.title} on {TEST}"


def _best(comparison: Mapping[str, Any]) -> tuple[str, list[Pair]]:
    """The best experiment, and it against each of the others, the next best first."""
    results = pairs.results(comparison)
    best, *others = pairs.ranking(results) or list(comparison["systems"])
    sides = pairs.between(results)
    return best, [sides[best, other] for other in others]


def _behind(against: Sequence[Pair], metric: Metric) -> list[str]:
    """How far behind the others are, and whether the choice of test records could explain it."""
    if not against:
        return []
    second, *rest = against
    corrected = f", {second.corrected:.3f} corrected for the number of pairs" if rest else ""
    which = "The next" if rest else "The other"
    value, low, high = (rounded(end, metric) for end in (second.value, second.low, second.high))
    sentences = [
        f"{which}, {second.b}, is {value} behind (95% interval {low} to {high},"
        f" p = {second.p_value:.3f}{corrected}): {_side(second)} noise."
    ]
    leads = [rounded(pair.value, metric) for pair in rest]
    if len(rest) == 1:
        sentences.append(f"The last, {rest[0].b}, is {leads[0]} behind, {_side(rest[0])} noise.")
    elif rest:
        beyond = sum(pair.beyond_noise for pair in rest)
        share = {0: "all within", len(rest): "all beyond"}.get(
            beyond, f"{in_words(beyond)} of them beyond"
        )
        sentences.append(
            f"The other {in_words(len(rest))} are {leads[0]} to {leads[-1]} behind, {share} noise."
        )
    return sentences


def _side(pair: Pair) -> str:
    return "beyond" if pair.beyond_noise else "within"


def _cost(comparison: Mapping[str, Any], costs: Costs, best: str, against: Sequence[Pair]) -> str:
    """What training the best costs, beside the cheapest that is not worse, or else of all."""
    systems = comparison["systems"]
    seconds = _comparable(systems, costs)
    parameters = {name: system["trainable_parameters"] for name, system in systems.items()}
    price = seconds or parameters
    size = f"{amount(parameters[best])} parameters"
    spent = f"Training {best} changes {size}"
    if seconds:
        spent = f"Training {best} takes {duration(seconds[best])} for {size}, pretraining apart"
    level = [pair for pair in against if not pair.beyond_noise]
    rivals = {pair.b: pair for pair in level or against}
    if not rivals:
        return f"{spent}."
    cheapest = min(rivals, key=lambda name: price[name])
    pool = "of those that cannot be told apart" if level else "of all"
    if len(rivals) > 1 and price[best] <= price[cheapest]:
        least = "the least" if price[best] < price[cheapest] else "as little as any"
        return f"{spent}: {least} {pool}."
    theirs = f"{amount(parameters[cheapest])} parameters"
    theirs = f"{duration(seconds[cheapest])}, {theirs}" if seconds else theirs
    behind = f"{rounded(rivals[cheapest].value, headline(comparison))} behind"
    if len(rivals) == 1:
        place = "which cannot be told apart from it" if level else f"which is {behind}"
    else:
        place = f"the cheapest {pool}" + ("" if level else f", but {behind}")
    beside = _beside(price[best], price[cheapest], timed=bool(seconds))
    return f"{spent}: {beside} {cheapest} ({theirs}), {place}."


def _comparable(names: Iterable[str], costs: Costs) -> dict[str, float]:
    """Seconds of training of all, or of none: unless all were measured, and on one machine."""
    found = {name: costs.get(f"train@{name}") for name in names}
    measured = {name: cost for name, cost in found.items() if cost is not None}
    if len(measured) < len(found) or len({cost["device"] for cost in measured.values()}) > 1:
        return {}
    return {name: cost["seconds"] for name, cost in measured.items()}


def _beside(ours: float, theirs: float, *, timed: bool) -> str:
    if not theirs or ours * 1.05 < theirs:
        return f"{'more' if ours > theirs else 'less'}{' time' if timed else ''} than"
    measure = f"as {'long' if timed else 'many'} as"
    return f"about {measure}" if ours < 1.05 * theirs else f"{ours / theirs:.1f} times {measure}"
