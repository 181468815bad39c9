"""The paired tests of a study, and what they establish: tiers, leaders and the study's claim.

Every p value is corrected for the number of pairs by Holm's method. Tables and pages call a
difference beyond noise by one rule: `Pair.beyond_noise`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations_with_replacement
from string import ascii_lowercase
from typing import Any, NamedTuple

from wxb.metrics import LEVEL
from wxb.reporting.charts.formatting import listed, rounded
from wxb.reporting.charts.scores import (
    baselines,
    headline,
    headline_scores,
    is_better,
    trained,
)

BEYOND_NOISE, WITHIN_NOISE = "beyond noise", "within noise"
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
    def finding(self) -> str:
        """What the test found: BEYOND_NOISE or WITHIN_NOISE."""
        return BEYOND_NOISE if self.beyond_noise else WITHIN_NOISE

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


def groups_warning(comparison: Mapping[str, Any]) -> str:
    """A warning if no pair can be beyond noise with so few groups of test records, else "".

    With G groups, no p value is below 2 ** (1 - G) before the correction, see `paired_difference`.
    """
    pairs, groups = len(comparison["pairs"]), comparison["groups"]
    least = min(1.0, pairs * 2.0 ** (1 - groups))
    if least <= ALPHA:
        return ""
    return (
        f"Too few groups of test records for {pairs} tests: with {groups} groups, no corrected"
        f" p value is below {rounded(least)}."
    )


def leaders(comparison: Mapping[str, Any]) -> list[str]:
    """The trained experiments that no other beats beyond noise, in the study's order.

    No two of them differ beyond noise. Their order by score may change on another machine, this
    list rarely.
    """
    beaten = {pair.b for pair in corrected_pairs(comparison) if pair.beyond_noise}
    return [name for name in _tested(comparison) if name not in beaten]


def claim(comparison: Mapping[str, Any]) -> str:
    """The conclusion of a study: who is ahead, of how many others, and by how much.

    A second sentence names the experiments that are no better than a baseline. Names are in the
    study's order, as differences within noise rank nothing.
    """
    best, others = leaders(comparison), len(_tested(comparison)) - len(leaders(comparison))
    leads = pairs_by_names(corrected_pairs(comparison))
    beaten = [
        name
        for name in _tested(comparison)
        if name not in best and all(leads[leader, name].beyond_noise for leader in best)
    ]
    clauses = []
    if len(best) > 1:
        clauses.append("do not differ beyond noise")
    if beaten:
        least = min(leads[leader, name].value for leader in best for name in beaten)
        clauses.append(
            f"{'are' if len(best) > 1 else 'is'} ahead of {len(beaten)} of {others} other"
            f" experiments beyond noise, by {rounded(least, headline(comparison))} or more"
        )
    if not clauses:
        clauses.append("is behind no other experiment")
    sentence = f"{listed(best)} ({_score_range(comparison, best)}) {' and '.join(clauses)}."
    return " ".join(filter(None, [sentence, _behind_baseline(comparison)]))


def _tested(comparison: Mapping[str, Any]) -> list[str]:
    """The experiments that tests compare, in the study's order; all if there is no test."""
    tested = {name for pair in comparison["pairs"] for name in (pair["a"], pair["b"])}
    return [name for name in trained(comparison) if name in tested or not tested]


def _score_range(comparison: Mapping[str, Any], names: Sequence[str]) -> str:
    """The lowest and the highest headline score of experiments: `F1 0.852 to 0.857`."""
    metric, scores = headline(comparison), headline_scores(comparison)
    values = [scores[name]["value"] for name in names]
    ends = dict.fromkeys(rounded(end, metric) for end in (min(values), max(values)))
    return f"{metric.title} {' to '.join(ends)}"


def _behind_baseline(comparison: Mapping[str, Any]) -> str:
    """The trained experiments without a better score than the best baseline; empty if none."""
    metric = headline(comparison)
    scores = {name: score["value"] for name, score in headline_scores(comparison).items()}
    sign = -1 if metric.lower_is_better else 1
    best = max(baselines(comparison), key=lambda name: sign * scores[name], default=None)
    behind = [
        name
        for name in trained(comparison)
        if best is not None and not is_better(scores[name], scores[best], metric)
    ]
    if best is None or not behind:
        return ""
    return f"Not ahead of the baseline {best} ({rounded(scores[best], metric)}): {listed(behind)}."


def tiers(comparison: Mapping[str, Any]) -> dict[str, str]:
    """The letters of each experiment in the tests; experiments that share one do not differ.

    Empty if there is no pair.
    """
    pairs = corrected_pairs(comparison)
    if not pairs:
        return {}
    established = [(pair.a, pair.b) for pair in pairs if pair.beyond_noise]
    return letters(_tested(comparison), established)


_Column = frozenset[str]  # the systems that share a letter


def letters(names: Sequence[str], established: Collection[tuple[str, str]]) -> dict[str, str]:
    """The letters of each system; `established` are the pairs that differ, the better one first.

    Two systems share a letter if and only if no difference between them is established. The first
    letters are those of the systems that lead most and are led least.

    Source: Piepho (2004), "An Algorithm for a Letter-Based Representation of All-Pairwise
    Comparisons" (insert and absorb; here without the letters that others make redundant).
    """
    columns = [frozenset(names)]
    balance = dict.fromkeys(names, 0)
    for a, b in established:
        split = [
            part
            for column in columns
            for part in ([column - {a}, column - {b}] if {a, b} <= column else [column])
        ]
        unique = dict.fromkeys(split)
        columns = [column for column in unique if not any(column < other for other in unique)]
        balance[a] += 1
        balance[b] -= 1

    def order(column: _Column) -> tuple[float, list[int]]:
        members = [index for index, name in enumerate(names) if name in column]
        return -sum(balance[name] for name in column) / len(column), members

    # Columns of few members go first if all their pairs are in others.
    columns = sorted(_needed(sorted(columns, key=lambda c: (len(c), order(c)))), key=order)
    return {
        name: "".join(_letter(i) for i, column in enumerate(columns) if name in column)
        for name in names
    }


def _needed(columns: Sequence[_Column]) -> list[_Column]:
    """The columns without those whose pairs are all in others, the first ones first."""
    needed = list(columns)
    for column in columns:
        others = [_pairs(other) for other in needed if other is not column]
        if _pairs(column) <= set().union(*others):
            needed.remove(column)
    return needed


def _pairs(column: _Column) -> set[tuple[str, str]]:
    return {*combinations_with_replacement(sorted(column), 2)}


def _letter(index: int) -> str:
    """a to z, then a1, b1 and so on."""
    rounds, letter = divmod(index, len(ascii_lowercase))
    return ascii_lowercase[letter] + (str(rounds) if rounds else "")
