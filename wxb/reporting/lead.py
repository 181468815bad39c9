"""A study in a few plain sentences, made from its numbers alone.

Which experiment is best, whether that is beyond noise, what it costs, and where it fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from wxb.metrics import TEST
from wxb.reporting import pairs
from wxb.reporting.costs import Costs
from wxb.reporting.pairs import Pair
from wxb.reporting.wording import amount, duration, listed
from wxb.tasks.ner.metrics import Outcome

ENOUGH = 30  # gold spans, for the F1 of one type to be told
USABLE = 0.5  # F1, below which nobody would use a recogniser
NAMED = 3  # systems named one by one in a sentence; more are counted
NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
KINDS = {
    Outcome.MISSED: "a missed span",
    Outcome.SPURIOUS: "a spurious span",
    Outcome.WRONG_TYPE: "a wrong type",
    Outcome.WRONG_BOUNDARY: "a wrong boundary",
    Outcome.WRONG_BOTH: "a wrong type and boundary",
}


class Lead(NamedTuple):
    """The claim, and what bears it out; what there is nothing to tell of is empty."""

    claim: str
    further: str
    noise: str
    cost: str
    failures: str


def lead(comparison: Mapping[str, Any], costs: Costs) -> Lead:
    """The lead of a study; `costs` are by stage, such as train@ner-encoder, as far as measured."""
    systems = comparison["systems"]
    best, against = _best(comparison)
    score = systems[best]["f1"]
    return Lead(
        claim=claim(comparison),
        further=" ".join(_further(comparison)),
        noise=" ".join(
            [
                f"The 95% interval of {best} is {score['low']:.3f} to {score['high']:.3f}.",
                *_behind(against),
                *filter(None, [pairs.too_few(comparison)]),
            ]
        ),
        cost=_cost(systems, costs, best, against),
        failures=" ".join([*_weakest(systems[best]), *_commonest(systems[best])]),
    )


def claim(comparison: Mapping[str, Any]) -> str:
    """Which experiment of a study is best, and which may be as good, in one sentence."""
    best, against = _best(comparison)
    f1 = comparison["systems"][best]["f1"]["value"]
    level = [pair.b for pair in against if not pair.beyond_noise]
    if not against:
        return f"{best} reaches F1 {f1:.3f}."
    if not level:
        return f"{best} is best, with F1 {f1:.3f}."
    others = f"the other {_number(len(against))}"
    many = others if len(level) == len(against) else f"{_number(len(level))} of {others}"
    who = listed(level) if len(level) <= NAMED else many
    return f"{best} is ahead with F1 {f1:.3f}, but {who} cannot be told apart from it."


def _further(comparison: Mapping[str, Any]) -> Iterator[str]:
    """How the best do on the other test sets, which tell of what training had nothing of."""
    for name, found in comparison["further"].items():
        best, against = _best(found)
        f1 = found["systems"][best]["f1"]["value"]
        fall = comparison["systems"][best]["f1"]["value"] - f1
        side = f"{abs(fall):.3f} {'below' if fall > 0 else 'above'} its F1 on {TEST}"
        who = f"{best} is best with" if against else f"{best} has"
        warning = "none can be relied on: " if f1 < USABLE else ""
        yield f"On {name} {warning}{who} F1 {f1:.3f}, {side}."


def _best(comparison: Mapping[str, Any]) -> tuple[str, list[Pair]]:
    """The best experiment, and it against each of the others, the next best first."""
    told = pairs.results(comparison)
    best, *others = pairs.ranking(told) or list(comparison["systems"])
    sides = pairs.between(told)
    return best, [sides[best, other] for other in others]


def _behind(against: Sequence[Pair]) -> list[str]:
    """How far behind the others are, and whether the choice of test records could explain it."""
    if not against:
        return []
    second, *rest = against
    corrected = f", {second.corrected:.3f} corrected for the number of pairs" if rest else ""
    which = "The next" if rest else "The other"
    told = [
        f"{which}, {second.b}, is {second.value:.3f} behind (95% interval {second.low:.3f} to"
        f" {second.high:.3f}, p = {second.p_value:.3f}{corrected}): {_side(second)} noise."
    ]
    if len(rest) == 1:
        told.append(
            f"The last, {rest[0].b}, is {rest[0].value:.3f} behind, {_side(rest[0])} noise."
        )
    elif rest:
        beyond = sum(pair.beyond_noise for pair in rest)
        share = {0: "all within", len(rest): "all beyond"}.get(
            beyond, f"{_number(beyond)} of them beyond"
        )
        told.append(
            f"The other {_number(len(rest))} are {rest[0].value:.3f} to {rest[-1].value:.3f}"
            f" behind, {share} noise."
        )
    return told


def _side(pair: Pair) -> str:
    return "beyond" if pair.beyond_noise else "within"


def _cost(systems: Mapping[str, Any], costs: Costs, best: str, against: Sequence[Pair]) -> str:
    """What training the best costs, beside the cheapest that is not worse, or else of all."""
    seconds = _comparable(systems, costs)
    parameters = {name: system["trainable_parameters"] for name, system in systems.items()}
    price = seconds or parameters
    size = f"{amount(parameters[best])} parameters"
    told = f"Training {best} changes {size}"
    if seconds:
        told = f"Training {best} takes {duration(seconds[best])} for {size}, pretraining apart"
    level = [pair for pair in against if not pair.beyond_noise]
    rivals = {pair.b: pair for pair in level or against}
    if not rivals:
        return f"{told}."
    cheapest = min(rivals, key=lambda name: price[name])
    pool = "of those that cannot be told apart" if level else "of all"
    if len(rivals) > 1 and price[best] <= price[cheapest]:
        least = "the least" if price[best] < price[cheapest] else "as little as any"
        return f"{told}: {least} {pool}."
    theirs = f"{amount(parameters[cheapest])} parameters"
    theirs = f"{duration(seconds[cheapest])}, {theirs}" if seconds else theirs
    behind = f"{rivals[cheapest].value:.3f} behind"
    if len(rivals) == 1:
        place = "which cannot be told apart from it" if level else f"which is {behind}"
    else:
        place = f"the cheapest {pool}" + ("" if level else f", but {behind}")
    beside = _beside(price[best], price[cheapest], timed=bool(seconds))
    return f"{told}: {beside} {cheapest} ({theirs}), {place}."


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


def _weakest(system: Mapping[str, Any]) -> list[str]:
    """The two types with the lowest F1, of those with enough gold spans to say so."""
    rows = {kind: row for kind, row in system["by_type"].items() if row["support"] >= ENOUGH}
    scores = [
        f"{kind} (F1 {rows[kind]['f1']:.3f} on {rows[kind]['support']:,} gold spans)"
        for kind in sorted(rows, key=lambda kind: (rows[kind]["f1"], kind))[:2]
    ]
    told = f"Of the types with {ENOUGH} gold spans or more, it finds {listed(scores)} worst."
    return [told] if scores else []


def _commonest(system: Mapping[str, Any]) -> list[str]:
    """The most frequent kind of error."""
    errors = {kind: system["errors"][kind] for kind in KINDS}
    kind = max(errors, key=lambda kind: errors[kind])
    total = sum(errors.values())
    return (
        [f"Its commonest error is {KINDS[kind]}: {errors[kind]:,} of {total:,}."] if total else []
    )


def _number(number: int) -> str:
    return NUMBERS[number] if number < len(NUMBERS) else f"{number:,}"
