"""The paired tests of a study, and the conclusions from them in words.

With many pairs some would pass a test by chance alone, so p values are corrected by Holm's method:
one rule for all that the tables and pages call beyond noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from wxb.metrics import LEVEL, Metric
from wxb.reporting.charts.formatting import in_words, listed, rounded, signed
from wxb.reporting.charts.scores import headline

NAMED = 3  # experiments named one by one in a sentence; more are counted
ALPHA = round(1 - LEVEL, 6)  # the risk of calling any difference of a study real by chance


class Pair(NamedTuple):
    """How far `a` is ahead of `b` by the headline score, with interval and p value.

    A negative `value` is how far it is behind, whichever direction of the score is better. From
    `results` it is told from the winner's side: `value` is not negative.
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
        """Whether the interval excludes 0, and the corrected p value is small enough too."""
        return (self.low > 0 or self.high < 0) and self.corrected <= ALPHA

    def turned(self) -> Pair:
        """The same, told from the other side."""
        return self._replace(
            a=self.b, b=self.a, value=0 - self.value, low=0 - self.high, high=0 - self.low
        )


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p values for being several, in the order given.

    Holm (1979), "A Simple Sequentially Rejective Multiple Test Procedure": the smallest of n is
    multiplied by n, the next by n - 1, and none may fall below a smaller one's.
    """
    corrected = [0.0] * len(p_values)
    least = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        least = max(least, min(1.0, (len(p_values) - rank) * p_values[place]))
        corrected[place] = least
    return corrected


def results(comparison: Mapping[str, Any]) -> list[Pair]:
    """Every pair of a comparison in its order, told from the winner's side."""
    lower = headline(comparison).lower_is_better
    corrected = holm([pair["difference"]["p_value"] for pair in comparison["pairs"]])
    pairs = [
        Pair(pair["a"], pair["b"], **pair["difference"], corrected=p_value)
        for pair, p_value in zip(comparison["pairs"], corrected, strict=True)
    ]
    if lower:  # the lead is the difference, seen from the other end
        pairs = [pair.turned()._replace(a=pair.a, b=pair.b) for pair in pairs]
    return [pair.turned() if pair.value < 0 else pair for pair in pairs]


def between(pairs: Sequence[Pair]) -> dict[tuple[str, str], Pair]:
    """The pairs by both orders of their names, each told from the first name's side."""
    return {(pair.a, pair.b): pair for told in pairs for pair in (told, told.turned())}


def ranking(pairs: Sequence[Pair]) -> list[str]:
    """The names in the pairs, the best first; empty where there is no pair."""
    names = dict.fromkeys(name for pair in pairs for name in (pair.a, pair.b))
    sides = between(pairs)

    def ahead(name: str) -> float:  # of the average of the others; equal scores, equal place
        return round(sum(sides[name, other].value for other in names if other != name), 6)

    return sorted(names, key=ahead, reverse=True)


def matrix(comparison: Mapping[str, Any]) -> dict[str, list[Pair | None]]:
    """By experiment, its lead over each in the study's order; None over itself."""
    sides = between(results(comparison))
    names = list(comparison["systems"])
    return {a: [None if a == b else sides[a, b] for b in names] for a in names}


def too_few(comparison: Mapping[str, Any]) -> str:
    """A sentence, where no corrected p value could be small enough; else empty."""
    pairs = len(comparison["pairs"])
    least = min(1.0, pairs / (1 + comparison["resamples"]))
    if least <= ALPHA:
        return ""
    several = f"{pairs} pairs" if pairs > 1 else "two systems"
    return (
        f"{comparison['resamples']:,} resamples are too few to tell {several} apart: no"
        f" {'corrected ' if pairs > 1 else ''}p can be below {rounded(least)}; `resamples` must be"
        f" {round(pairs / ALPHA):,} or more."
    )


def leaders(comparison: Mapping[str, Any]) -> list[str]:
    """The experiments that no other beats beyond noise, in the study's order.

    Between any two of them no difference is established. The order of their scores may turn round
    on another machine, this list rarely.
    """
    beaten = {pair.b for pair in results(comparison) if pair.beyond_noise}
    return [name for name in comparison["systems"] if name not in beaten]


def claim(comparison: Mapping[str, Any]) -> str:
    """The headline of a study: the best experiments, and whom they are established to beat."""
    first = leaders(comparison)
    others = [name for name in comparison["systems"] if name not in first]
    if len(first) == 1:
        verb = "is best, with" if others else "reaches"
        return f"{first[0]} {verb} {reached(comparison, first)}."
    who, all_of_them = listed(first), "Both" if len(first) == 2 else f"All {in_words(len(first))}"
    if len(first) > NAMED:
        many = f"{in_words(len(first))} of {in_words(len(comparison['systems']))}".capitalize()
        who = f"{many if others else all_of_them} experiments"
    sentences = [f"{who}: no difference found ({reached(comparison, first)})."]
    sides = between(results(comparison))
    ahead: dict[tuple[str, ...], list[str]] = {}
    for other in others:
        winners = tuple(name for name in first if sides[name, other].beyond_noise)
        ahead.setdefault(winners, []).append(other)
    for winners, losers in sorted(ahead.items(), key=lambda item: -len(item[0])):
        if not winners:  # only experiments that are themselves beaten are established to beat it
            continue
        rest = f"the other {in_words(len(losers))}" if losers == others else listed(losers)
        rest = listed(losers) if len(losers) == 1 else rest
        names = (
            listed(winners)
            if len(winners) <= NAMED
            else f"{in_words(len(winners)).capitalize()} of them"
        )
        names = all_of_them if len(winners) == len(first) else names
        verb = "is" if len(winners) == 1 else "are"
        sentences.append(f"{names} {verb} ahead of {rest} beyond noise.")
    return " ".join(sentences)


def reached(comparison: Mapping[str, Any], names: Sequence[str]) -> str:
    """The headline scores of some experiments: `F1 0.852 and 0.857`, of many the range."""
    metric = headline(comparison)
    values = [comparison["systems"][name][metric.key]["value"] for name in names]
    if len(values) > NAMED:
        return f"{metric.title} {rounded(min(values), metric)} to {rounded(max(values), metric)}"
    return f"{metric.title} {listed([rounded(value, metric) for value in values])}"


def verdicts(comparison: Mapping[str, Any]) -> list[str]:
    """The best against each other system, then the neighbours below it that noise could swap."""
    pairs = results(comparison)
    if not pairs:
        return []
    best, *others = ranking(pairs)
    sides = between(pairs)
    worth = [sides[best, other] for other in others]
    worth += [pair for names in pairwise(others) if not (pair := sides[names]).beyond_noise]
    metric, order = headline(comparison), [*comparison["systems"]]
    # Which of two is ahead within noise, another machine may turn round.
    level = [pair.beyond_noise or order.index(pair.a) < order.index(pair.b) for pair in worth]
    worth = [p if keep else p.turned() for p, keep in zip(worth, level, strict=True)]
    return [sentence(pair, metric, len(pairs)) for pair in worth]


def sentence(pair: Pair, metric: Metric, tests: int) -> str:
    """The result of one test of a study with so many; of several, with its corrected p value."""
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
