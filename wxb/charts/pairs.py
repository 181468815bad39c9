"""The paired tests of a study, and what they say in words.

With many pairs some would pass a test by chance alone, so p values are corrected by Holm's method:
one rule for all that the tables and pages call beyond noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from wxb.charts.scores import headline, signed, told
from wxb.metrics import LEVEL, Metric

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
        f" {'corrected ' if pairs > 1 else ''}p can be below {least:.3f}; `resamples` must be"
        f" {round(pairs / ALPHA):,} or more."
    )


def verdicts(comparison: Mapping[str, Any]) -> list[str]:
    """The best against each other system, then the neighbours below it that noise could swap."""
    pairs = results(comparison)
    if not pairs:
        return []
    best, *others = ranking(pairs)
    sides = between(pairs)
    worth = [sides[best, other] for other in others]
    worth += [pair for names in pairwise(others) if not (pair := sides[names]).beyond_noise]
    metric = headline(comparison)
    return [sentence(pair, metric, several=len(pairs) > 1) for pair in worth]


def sentence(pair: Pair, metric: Metric, *, several: bool) -> str:
    """What one test says; with `several`, its corrected p value too."""
    p_value = f"p = {pair.p_value:.3f}" + (f", Holm {pair.corrected:.3f}" if several else "")
    if pair.value == 0:
        return f"{pair.a} and {pair.b} have the same {metric.title} ({p_value})."
    low, high = (signed(bound, metric) for bound in (pair.low, pair.high))
    noise = f"95% interval of the difference {low} to {high}, {p_value}"
    lead = f"{told(pair.value, metric)} {metric.title}"
    if not pair.beyond_noise:
        return f"{pair.a} is ahead of {pair.b} by {lead}, within noise ({noise})."
    return f"{pair.a} beats {pair.b} by {lead} ({noise})."
