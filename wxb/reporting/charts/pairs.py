"""The paired tests of a study, and the conclusions from them in words.

Every p value is corrected for the number of pairs by Holm's method. Tables and pages call a
difference beyond noise by one rule: `Pair.beyond_noise`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from wxb.metrics import LEVEL, Metric
from wxb.reporting.charts.formatting import in_words, listed, rounded, signed
from wxb.reporting.charts.scores import headline

NAMED = 3  # experiments that a sentence names; more are counted
ALPHA = round(1 - LEVEL, 6)  # family-wise error rate of a study's tests


class Pair(NamedTuple):
    """The lead of `a` over `b` in the headline metric, with its interval and p value.

    `value` is positive if `a` is better, also for metrics where lower is better.
    """

    a: str
    b: str
    value: float
    low: float
    high: float
    p_value: float
    corrected: float

    @property
    def beyond_noise(self) -> bool:
        """Whether the interval excludes 0 and the corrected p value is at most ALPHA."""
        return (self.low > 0 or self.high < 0) and self.corrected <= ALPHA

    def swapped(self) -> Pair:
        """The same test as the lead of `b` over `a`."""
        return self._replace(
            a=self.b, b=self.a, value=0 - self.value, low=0 - self.high, high=0 - self.low
        )


def holm(p_values: Sequence[float]) -> list[float]:
    """P values corrected for their number, in the same order.

    Holm (1979), "A Simple Sequentially Rejective Multiple Test Procedure": the smallest of n is
    multiplied by n, the next by n - 1, and none may fall below a smaller one's.
    """
    corrected = [0.0] * len(p_values)
    least = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = least
    return corrected


def corrected_pairs(comparison: Mapping[str, Any]) -> list[Pair]:
    """Every pair of a comparison in its order, as the lead of the better system."""
    lower = headline(comparison).lower_is_better
    corrected = holm([pair["difference"]["p_value"] for pair in comparison["pairs"]])
    pairs = [
        Pair(pair["a"], pair["b"], **pair["difference"], corrected=p_value)
        for pair, p_value in zip(comparison["pairs"], corrected, strict=True)
    ]
    if lower:  # a lower score leads, so the difference changes its sign
        pairs = [pair.swapped()._replace(a=pair.a, b=pair.b) for pair in pairs]
    return [pair.swapped() if pair.value < 0 else pair for pair in pairs]


def pairs_by_names(pairs: Sequence[Pair]) -> dict[tuple[str, str], Pair]:
    """The pairs by (a, b) and by (b, a), each as the lead of the first name."""
    return {(side.a, side.b): side for pair in pairs for side in (pair, pair.swapped())}


def ranking(pairs: Sequence[Pair]) -> list[str]:
    """The names in the pairs, best first; empty if there is no pair."""
    names = dict.fromkeys(name for pair in pairs for name in (pair.a, pair.b))
    leads = pairs_by_names(pairs)

    def total_lead(name: str) -> float:  # rounded, so that equal scores rank equal
        return round(sum(leads[name, other].value for other in names if other != name), 6)

    return sorted(names, key=total_lead, reverse=True)


def matrix(comparison: Mapping[str, Any]) -> dict[str, list[Pair | None]]:
    """The leads of each experiment over all in the study's order; None over itself."""
    leads = pairs_by_names(corrected_pairs(comparison))
    names = list(comparison["systems"])
    return {a: [None if a == b else leads[a, b] for b in names] for a in names}


def groups_warning(comparison: Mapping[str, Any]) -> str:
    """A warning if there are too few groups for any p value to be significant, else ""."""
    pairs, groups = len(comparison["pairs"]), comparison["groups"]
    least = min(1.0, pairs * 2.0 ** (1 - groups))
    if least <= ALPHA:
        return ""
    several = f"{pairs} pairs" if pairs > 1 else "two systems"
    return (
        f"{groups} groups of test records are too few to compare {several}: no"
        f" {'corrected ' if pairs > 1 else ''}p value can be below {rounded(least)}."
    )


def leaders(comparison: Mapping[str, Any]) -> list[str]:
    """The experiments that no other beats beyond noise, in the study's order.

    No two of them differ beyond noise. Their order by score may change on another machine, this
    list rarely.
    """
    beaten = {pair.b for pair in corrected_pairs(comparison) if pair.beyond_noise}
    return [name for name in comparison["systems"] if name not in beaten]


def claim(comparison: Mapping[str, Any]) -> str:
    """The conclusion of a study: the best experiments, and which others each beats."""
    best = leaders(comparison)
    others = [name for name in comparison["systems"] if name not in best]
    if len(best) == 1:
        verb = "is best, with" if others else "reaches"
        return f"{best[0]} {verb} {format_scores(comparison, best)}."
    who, all_of_them = listed(best), "Both" if len(best) == 2 else f"All {in_words(len(best))}"
    if len(best) > NAMED:
        many = f"{in_words(len(best))} of {in_words(len(comparison['systems']))}".capitalize()
        who = f"{many if others else all_of_them} experiments"
    sentences = [f"{who}: no difference found ({format_scores(comparison, best)})."]
    leads = pairs_by_names(corrected_pairs(comparison))
    losers_by_winners: dict[tuple[str, ...], list[str]] = {}
    for other in others:
        winners = tuple(name for name in best if leads[name, other].beyond_noise)
        losers_by_winners.setdefault(winners, []).append(other)
    for winners, losers in sorted(losers_by_winners.items(), key=lambda item: -len(item[0])):
        if not winners:  # only experiments that are beaten themselves beat these
            continue
        rest = f"the other {in_words(len(losers))}" if losers == others else listed(losers)
        rest = listed(losers) if len(losers) == 1 else rest
        names = (
            listed(winners)
            if len(winners) <= NAMED
            else f"{in_words(len(winners)).capitalize()} of them"
        )
        names = all_of_them if len(winners) == len(best) else names
        verb = "is" if len(winners) == 1 else "are"
        sentences.append(f"{names} {verb} ahead of {rest} beyond noise.")
    return " ".join(sentences)


def format_scores(comparison: Mapping[str, Any], names: Sequence[str]) -> str:
    """The headline scores of experiments: `F1 0.852 and 0.857`, or the range of many."""
    metric = headline(comparison)
    values = [comparison["systems"][name][metric.key]["value"] for name in names]
    if len(values) > NAMED:
        return f"{metric.title} {rounded(min(values), metric)} to {rounded(max(values), metric)}"
    return f"{metric.title} {listed([rounded(value, metric) for value in values])}"


def verdicts(comparison: Mapping[str, Any]) -> list[str]:
    """A sentence for each pair of the best and another, and for neighbours within noise."""
    pairs = corrected_pairs(comparison)
    if not pairs:
        return []
    best, *others = ranking(pairs)
    leads = pairs_by_names(pairs)
    shown = [leads[best, other] for other in others]
    shown += [pair for names in pairwise(others) if not (pair := leads[names]).beyond_noise]
    metric, order = headline(comparison), [*comparison["systems"]]
    # Within noise another machine may swap the two, so they are named in the study's order.
    return [
        verdict(
            pair
            if pair.beyond_noise or order.index(pair.a) < order.index(pair.b)
            else pair.swapped(),
            metric,
            len(pairs),
        )
        for pair in shown
    ]


def verdict(pair: Pair, metric: Metric, tests: int) -> str:
    """The result of one test in a sentence; `tests` is the number of tests of the study."""
    p_value = f"p = {rounded(pair.p_value)}" + (
        f", Holm {rounded(pair.corrected)}" if tests > 1 else ""
    )
    if pair.value == 0:
        return f"{pair.a} and {pair.b} have the same {metric.title} ({p_value})."
    low, high = (signed(bound, metric) for bound in (pair.low, pair.high))
    noise = f"95% interval of the difference {low} to {high}, {p_value}"
    if pair.beyond_noise:
        return f"{pair.a} beats {pair.b} by {rounded(pair.value, metric)} {metric.title} ({noise})."
    result = "no difference found"
    if pair.low > 0 or pair.high < 0:
        result = "suggestive, not established"
        result += f" after correcting for {tests} pairs" if tests > 1 else ""
    difference = f"{signed(pair.value, metric)} {metric.title}"
    return f"{pair.a} and {pair.b}: {result} ({difference}, {noise})."
