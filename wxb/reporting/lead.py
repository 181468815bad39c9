"""A study in a few plain sentences, made from its numbers alone.

Which experiment is best, whether that is beyond noise, what it costs, and where it fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from wxb.charts import pairs
from wxb.charts.pairs import Pair
from wxb.charts.parts import TaskPage
from wxb.charts.scores import below, headline, told
from wxb.charts.wording import amount, duration, listed
from wxb.metrics import TEST, Metric
from wxb.reporting.costs import Costs

NAMED = 3  # systems named one by one in a sentence; more are counted
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


class Lead(NamedTuple):
    """The claim, and what bears it out; what there is nothing to tell of is empty."""

    claim: str
    further: str
    noise: str
    cost: str
    failures: str


def lead(comparison: Mapping[str, Any], costs: Costs, task: TaskPage) -> Lead:
    """The lead of a study of a task.

    `costs` are by stage, such as train@<experiment>, as far as measured.
    """
    systems, metric = comparison["systems"], headline(comparison)
    best, against = _best(comparison)
    low, high = (told(systems[best][metric.key][end], metric) for end in ("low", "high"))
    return Lead(
        claim=claim(comparison),
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


def claim(comparison: Mapping[str, Any]) -> str:
    """Which experiment of a study is best, and which may be as good, in one sentence."""
    best, against = _best(comparison)
    reached = _reached(comparison, best)
    level = [pair.b for pair in against if not pair.beyond_noise]
    if not against:
        return f"{best} reaches {reached}."
    if not level:
        return f"{best} is best, with {reached}."
    others = f"the other {_number(len(against))}"
    many = others if len(level) == len(against) else f"{_number(len(level))} of {others}"
    who = listed(level) if len(level) <= NAMED else many
    return f"{best} is ahead with {reached}, but {who} cannot be told apart from it."


def _reached(comparison: Mapping[str, Any], name: str) -> str:
    metric = headline(comparison)
    return f"{metric.title} {told(comparison['systems'][name][metric.key]['value'], metric)}"


def _further(comparison: Mapping[str, Any], usable: float | None) -> Iterator[str]:
    """How the best do on the other test sets, which tell of what training had nothing of."""
    metric = headline(comparison)
    for name, found in comparison["further"].items():
        best, against = _best(found)
        value = found["systems"][best][metric.key]["value"]
        fall = comparison["systems"][best][metric.key]["value"] - value
        where = "below" if fall > 0 else "above"
        side = f"{told(abs(fall), metric)} {where} its {metric.title} on {TEST}"
        who = f"{best} is best with" if against else f"{best} has"
        useless = usable is not None and below(value, usable, metric)
        warning = "none can be relied on: " if useless else ""
        yield f"On {name} {warning}{who} {_reached(found, best)}, {side}."


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
    value, low, high = (told(end, metric) for end in (second.value, second.low, second.high))
    sentences = [
        f"{which}, {second.b}, is {value} behind (95% interval {low} to {high},"
        f" p = {second.p_value:.3f}{corrected}): {_side(second)} noise."
    ]
    leads = [told(pair.value, metric) for pair in rest]
    if len(rest) == 1:
        sentences.append(f"The last, {rest[0].b}, is {leads[0]} behind, {_side(rest[0])} noise.")
    elif rest:
        beyond = sum(pair.beyond_noise for pair in rest)
        share = {0: "all within", len(rest): "all beyond"}.get(
            beyond, f"{_number(beyond)} of them beyond"
        )
        sentences.append(
            f"The other {_number(len(rest))} are {leads[0]} to {leads[-1]} behind, {share} noise."
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
    behind = f"{told(rivals[cheapest].value, headline(comparison))} behind"
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


def _number(number: int) -> str:
    return NUMBERS[number] if number < len(NUMBERS) else f"{number:,}"
