"""The paired tests of a study, and the conclusions from them in words.

Every p value is corrected for the number of pairs by Holm's method. Tables and pages call a
difference beyond noise by one rule: `Pair.beyond_noise`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from wxb.metrics import LEVEL, Metric
from wxb.reporting.charts import tiers as letters
from wxb.reporting.charts.baselines import NAMED, behind_baseline, trained
from wxb.reporting.charts.formatting import in_words, listed, p_value, rounded, signed
from wxb.reporting.charts.scores import headline

BEYOND_NOISE = "beyond noise"
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

    @property
    def is_suggestive(self) -> bool:
        """Whether the interval excludes 0, but the corrected p value is above ALPHA."""
        return (self.low > 0 or self.high < 0) and not self.beyond_noise

    def finding(self, tests: int) -> str:
        """What the test found, in words; `tests` is the number of tests of the study."""
        if self.beyond_noise:
            return BEYOND_NOISE
        return _suggestive(tests) if self.is_suggestive else "no difference found"

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
        Pair(pair["a"], pair["b"], **pair["difference"], corrected=p)
        for pair, p in zip(comparison["pairs"], corrected, strict=True)
    ]
    if lower:  # a lower score leads, so the difference changes its sign
        pairs = [pair.swapped()._replace(a=pair.a, b=pair.b) for pair in pairs]
    return [pair.swapped() if pair.value < 0 else pair for pair in pairs]


def pairs_by_names(pairs: Sequence[Pair]) -> dict[tuple[str, str], Pair]:
    """The pairs by (a, b) and by (b, a), each as the lead of the first name."""
    return {(side.a, side.b): side for pair in pairs for side in (pair, pair.swapped())}


def matrix(comparison: Mapping[str, Any]) -> dict[str, list[Pair | None]]:
    """The leads of each trained experiment over all in the study's order; None over itself."""
    leads = pairs_by_names(corrected_pairs(comparison))
    names = trained(comparison)
    return {a: [None if a == b else leads[a, b] for b in names] for a in names}


def groups_warning(comparison: Mapping[str, Any]) -> str:
    """A warning if no pair can be significant with so few groups of test records, else "".

    With G groups, no p value is below 2 ** (1 - G) before the correction, see `paired_difference`.
    """
    pairs, groups = len(comparison["pairs"]), comparison["groups"]
    least = min(1.0, pairs * 2.0 ** (1 - groups))
    if least <= ALPHA:
        return ""
    several = f"{pairs} pairs" if pairs > 1 else "two systems"
    return (
        f"The number of groups of test records ({groups}) is too low to compare {several}: no"
        f" {'corrected ' if pairs > 1 else ''}p value can be below {rounded(least)}."
    )


def tiers(comparison: Mapping[str, Any]) -> dict[str, str]:
    """The letters of each experiment in the tests; experiments that share one do not differ.

    Empty if there is no pair.
    """
    pairs = corrected_pairs(comparison)
    if not pairs:
        return {}
    established = [(pair.a, pair.b) for pair in pairs if pair.beyond_noise]
    return letters.tiers(_tested(comparison), established)


def leaders(comparison: Mapping[str, Any]) -> list[str]:
    """The trained experiments that no other beats beyond noise, in the study's order.

    No two of them differ beyond noise. Their order by score may change on another machine, this
    list rarely.
    """
    beaten = {pair.b for pair in corrected_pairs(comparison) if pair.beyond_noise}
    return [name for name in _tested(comparison) if name not in beaten]


def claim(comparison: Mapping[str, Any]) -> str:
    """The conclusion of a study in at most three sentences, from groups of experiments.

    These are the leaders, those that all leaders beat beyond noise, and those that only some
    experiments beat. Names are in the study's order: within a group, nothing is ranked. Another
    sentence names experiments that are no better than a baseline.
    """
    best, leads = leaders(comparison), pairs_by_names(corrected_pairs(comparison))
    others = [name for name in _tested(comparison) if name not in best]
    behind_all = [o for o in others if all(leads[name, o].beyond_noise for name in best)]
    behind_some = [name for name in others if name not in behind_all]
    scores = score_range(comparison, best)
    if not others and len(best) == 1:
        return " ".join(filter(None, [f"{best[0]} reaches {scores}.", behind_baseline(comparison)]))
    who = f"{_who(comparison, best)} ({scores})"
    if len(best) > 1:
        sentences = [f"{who}: no difference found."]
        who = "Both are" if len(best) == 2 else "All are"
    else:
        sentences = [] if behind_all else [f"{who} is behind no other experiment."]
        who += " is"
    if behind_all:
        beaten = _others(behind_all, comparison, are_all=not behind_some)
        sentences.append(f"{who} ahead of {beaten} beyond noise.")
    if behind_some:
        beaten = _others(behind_some, comparison, are_all=not behind_all)
        verb = "is" if len(behind_some) == 1 else "are"
        start = beaten if len(behind_some) <= NAMED else beaten[0].upper() + beaten[1:]
        sentences.append(f"{start} {verb} behind some experiments beyond noise.")
    return " ".join(filter(None, [*sentences, behind_baseline(comparison)]))


def _tested(comparison: Mapping[str, Any]) -> list[str]:
    """The experiments that tests compare, in the study's order; all if there is no test."""
    tested = {name for pair in comparison["pairs"] for name in (pair["a"], pair["b"])}
    return [name for name in trained(comparison) if name in tested or not tested]


def _who(comparison: Mapping[str, Any], names: Sequence[str]) -> str:
    """Experiments that begin a sentence: up to NAMED by name, more by a count or the others."""
    everyone = _tested(comparison)
    rest = [name for name in everyone if name not in names]
    if len(names) <= NAMED:
        return listed(names)
    if not rest:
        return f"All {in_words(len(names))} experiments"
    if len(rest) <= 2:
        return f"All experiments but {listed(rest)}"
    return f"{in_words(len(names)).capitalize()} of {in_words(len(everyone))} experiments"


def _others(names: Sequence[str], comparison: Mapping[str, Any], *, are_all: bool) -> str:
    """Experiments that are beaten, with their scores; `are_all` if no other ones are."""
    count = in_words(len(names))
    who = f"the other {count}" if are_all else f"{count} others"
    metric = headline(comparison)
    scores = score_range(comparison, names).removeprefix(f"{metric.title} ")
    return f"{listed(names) if len(names) <= NAMED else who} ({scores})"


def score_range(comparison: Mapping[str, Any], names: Sequence[str]) -> str:
    """The lowest and the highest headline score of experiments: `F1 0.852 to 0.857`."""
    metric = headline(comparison)
    values = [comparison["systems"][name][metric.key]["value"] for name in names]
    ends = dict.fromkeys(rounded(end, metric) for end in (min(values), max(values)))
    return f"{metric.title} {' to '.join(ends)}"


def verdicts(comparison: Mapping[str, Any]) -> list[str]:
    """What the tests found: leads beyond noise of the leaders, then counts of the other pairs.

    The only pair of a study has its sentence in any case.
    """
    pairs, metric = corrected_pairs(comparison), headline(comparison)
    if len(pairs) == 1:
        order = [*comparison["systems"]]
        (pair,) = pairs
        # Within noise another machine may swap the two, so they are named in the study's order.
        is_ordered = order.index(pair.a) < order.index(pair.b)
        return [verdict(pair if pair.beyond_noise or is_ordered else pair.swapped(), metric, 1)]
    return [*leads(comparison), *unestablished(pairs)]


def leads(comparison: Mapping[str, Any]) -> list[str]:
    """A sentence for each lead of the leaders beyond noise."""
    pairs, metric, best = corrected_pairs(comparison), headline(comparison), leaders(comparison)
    return [
        verdict(pair, metric, len(pairs)) for pair in pairs if pair.beyond_noise and pair.a in best
    ]


def beyond_noise(comparison: Mapping[str, Any]) -> str:
    """How many of several differences are beyond noise, and what the tests found of the others."""
    pairs = corrected_pairs(comparison)
    beyond = sum(pair.beyond_noise for pair in pairs)
    first = f"{beyond} of {len(pairs)} differences are beyond noise."
    return " ".join([first, *unestablished(pairs)])


def unestablished(pairs: Sequence[Pair]) -> list[str]:
    """A sentence on the suggestive pairs of several, and one on those without a difference."""
    suggestive = [pair for pair in pairs if pair.is_suggestive]
    unseparated = sum(not pair.beyond_noise and not pair.is_suggestive for pair in pairs)
    sentences = []
    if suggestive:
        names = listed([f"{pair.a} over {pair.b}" for pair in suggestive])
        which = names if len(suggestive) <= NAMED else f"{len(suggestive)} of them"
        sentences.append(f"{_suggestive(len(pairs)).capitalize()}: {which}.")
    if unseparated:
        sentences.append(f"No difference found in {unseparated} of {len(pairs)} pairs.")
    return sentences


def verdict(pair: Pair, metric: Metric, tests: int) -> str:
    """The result of one test in a sentence; `tests` is the number of tests of the study."""
    p = f"p {p_value(pair.p_value, '= ')}"
    if tests > 1:
        p += f", Holm {p_value(pair.corrected)}"
    if pair.value == 0:
        return f"{pair.a} and {pair.b} have the same {metric.title} ({p})."
    low, high = (signed(bound, metric) for bound in (pair.low, pair.high))
    noise = f"95% interval of the difference {low} to {high}, {p}"
    if pair.beyond_noise:
        return f"{pair.a} beats {pair.b} by {rounded(pair.value, metric)} {metric.title} ({noise})."
    difference = f"{signed(pair.value, metric)} {metric.title}"
    return f"{pair.a} and {pair.b}: {pair.finding(tests)} ({difference}, {noise})."


def _suggestive(tests: int) -> str:
    """What to call a difference whose interval excludes 0, if its corrected p value is too high."""
    after = f" after correcting for {tests} pairs" if tests > 1 else ""
    return f"suggestive, not established{after}"
