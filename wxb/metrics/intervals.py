"""Confidence intervals and paired tests, from scores without each group in turn (the jackknife).

Scores are functions of statistics that add up over records. Records of one template, article,
author or speaker are not independent, so a whole group is left out at a time. The spread of these
scores gives the standard error, and Student's t the interval and the p value. Both hold from four
groups up, of unequal sizes too: `python benchmarks/intervals.py` measures it. The same arguments
always give the same numbers.

Sources: Efron & Stein (1981), "The Jackknife Estimate of Variance"; MacKinnon, Nielsen & Webb
(2023), "Fast and Reliable Jackknife and Bootstrap Methods for Cluster-Robust Inference"; Kish
(1965), "Survey Sampling" (effective sample size); Satterthwaite (1946), "An Approximate
Distribution of Estimates of Variance Components"; Cramér (1946), "Mathematical Methods of
Statistics", section 27.4 (the variance of a variance, by kurtosis).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, stdtr, stdtrit  # scipy.stats imports slowly

from wxb.metrics import LEVEL, Metric

Floats = NDArray[np.float64]
Sums = Mapping[str, NDArray[Any]]  # by name: (...), or (..., K) if a statistic has K numbers
Scores = Callable[[Sums], Mapping[str, NDArray[Any]]]  # (...) by the key of a metric

_BLOCK_CELLS = 2**22  # numbers in memory at once, over groups and seeds: 32 MiB of int64


class Interval(NamedTuple):
    """A score on the given records and the ends of its confidence interval."""

    value: float
    low: float
    high: float


class Difference(NamedTuple):
    """A difference of two scores, its confidence interval and two-sided p value."""

    value: float
    low: float
    high: float
    p_value: float


class Groups(NamedTuple):
    """Statistics of the groups of records that one system was scored on."""

    sums: Sums  # each (groups, seeds) or (groups, seeds, K)
    sizes: NDArray[np.int64]  # (groups,): records

    @classmethod
    def from_records(cls, runs: Sequence[Sums], names: Sequence[str] | None = None) -> Self:
        """Add up statistics, each (records,) or (records, K), over the records of each group.

        There is a run for each seed. Groups are in the order of records, by default one for each.
        """
        count = len(next(iter(runs[0].values())))
        names = [*map(str, range(count))] if names is None else names
        indices = {name: index for index, name in enumerate(dict.fromkeys(names))}
        groups = np.array([indices[name] for name in names])
        sums = {}
        for key in runs[0]:
            values = np.stack([run[key] for run in runs], axis=1)
            sums[key] = np.zeros((len(indices), *values.shape[1:]), values.dtype)
            np.add.at(sums[key], groups, values)
        return cls(sums, np.bincount(groups))

    def total(self) -> Sums:
        """The sums over all groups: (seeds,) or (seeds, K) by name."""
        return {name: values.sum(axis=0) for name, values in self.sums.items()}


def intervals(groups: Groups, scores: Scores, metrics: Sequence[Metric]) -> dict[str, Interval]:
    """Compute each metric with its confidence interval; a score is the mean over seeds.

    An interval is symmetric on the logit scale of a metric with two bounds, and on the log scale of
    one without a largest value. On the log scale a few groups may make most of the errors, so heavy
    tails lower the degrees of freedom. A score at a bound gets the Clopper-Pearson interval for the
    share of groups. Without spread, `chance` is exact; others count groups as all right or wrong.
    Only groups with a `denominator` count; fewer than two get the whole scale.
    """
    values, left_out = scores(groups.total()), _left_out(groups, scores)
    return {m.key: _interval(groups, m, values[m.key], left_out[m.key]) for m in metrics}


def paired_difference(a: Groups, b: Groups, scores: Scores, metric: Metric) -> Difference:
    """The metric of system `a` minus that of `b` on the same groups, also if lower is better.

    Their seeds are independent. Without any spread, the margin is that of a score at a bound. The p
    value is at least 2 ** (1 - groups), the smallest of the exact sign-flip test if all groups
    differ: four groups can show no difference at 0.05. Only groups with a `denominator`, in any of
    the systems, count; fewer than two get the whole scale and p = 1.
    """
    kept = _with_data(metric, a, b)
    sizes = a.sizes[kept]
    values = [scores(groups.total())[metric.key] for groups in (a, b)]
    value = float(values[0].mean() - values[1].mean())
    low, high = _bounds(metric, *values)
    if len(sizes) < 2:
        return Difference(value, low - high, high - low, 1.0)
    left_out = [_left_out(groups, scores)[metric.key][kept].mean(axis=1) for groups in (a, b)]
    error, df = _standard_error(sizes, left_out[0] - left_out[1], values)
    same = (high - low) * (1 - ((1 - LEVEL) / 2) ** (1 / len(sizes)))  # as in `_interval`
    margin = error * float(stdtrit(df, (1 + LEVEL) / 2)) or same
    p_value = 2 * float(stdtr(df, -abs(value) / error)) if error else float(abs(value) <= margin)
    limit = np.inf if metric.high is None else high - low
    return Difference(
        value,
        max(-limit, value - margin),
        min(limit, value + margin),
        max(p_value, 2.0 ** (1 - len(sizes))),
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """P values corrected for their number, in the same order.

    Holm (1979), "A Simple Sequentially Rejective Multiple Test Procedure": the smallest of n is
    multiplied by n, the next by n - 1, and none may fall below a smaller one's.
    """
    order = np.argsort(p_values, kind="stable")
    steps = np.arange(len(order), 0, -1) * np.array(p_values)[order]
    corrected = np.minimum(1.0, np.maximum.accumulate(steps))[np.argsort(order)]
    return [*map(float, corrected)]


def _with_data(metric: Metric, *systems: Groups) -> NDArray[np.bool_]:
    """Whether the denominator of a metric is not 0 in each group (groups,) for any system."""
    keys = [metric.denominator] if metric.denominator else systems[0].sums
    values = [groups.sums[key] for groups in systems for key in keys]
    return np.any([each.reshape(len(each), -1).any(axis=1) for each in values], axis=0)


def _left_out(groups: Groups, scores: Scores) -> dict[str, Floats]:
    """Scores without each group: (groups, seeds) by key."""
    total = groups.total()
    block = max(1, _BLOCK_CELLS // sum(values.size for values in total.values()))
    blocks = [
        scores({key: total[key] - sums[start : start + block] for key, sums in groups.sums.items()})
        for start in range(0, len(groups.sizes), block)
    ]
    return {key: np.concatenate([block[key] for block in blocks]) for key in blocks[0]}


def _standard_error(
    sizes: NDArray[np.int64],
    left_out: Floats,
    by_seed: Sequence[Floats],
    excess_kurtosis: float = 0.0,
) -> tuple[float, float]:
    """Standard error and degrees of freedom of a score, or of a difference of scores.

    `left_out` has the score without each group (groups,), `by_seed` the scores of each system
    (seeds,). Groups of unequal sizes or `excess_kurtosis` count as fewer (Kish, Cramér). Variances
    of groups and of several seeds are added (Satterthwaite). A sum of rounding alone is 0.
    """
    count = len(sizes)
    kish_df = max(1.0, float(sizes.sum() ** 2 / np.square(sizes).sum()) - 1)
    group_df = max(1.0, 1 / (1 / kish_df + excess_kurtosis / (2 * count)))
    group_variance = (count - 1) / count * float(np.square(left_out - left_out.mean()).sum())
    several = [scores for scores in by_seed if len(scores) > 1]
    variances = [group_variance, *(float(s.var(ddof=1)) / len(s) for s in several)]
    dfs = [group_df, *(len(scores) - 1.0 for scores in several)]
    total = sum(variances)
    if total <= np.square(1e-9 * max(1.0, np.abs(left_out).max())):  # of rounding alone
        return 0.0, group_df
    squares = [variance**2 / df for variance, df in zip(variances, dfs, strict=True)]
    return total**0.5, total**2 / sum(squares)


def _interval(groups: Groups, metric: Metric, values: Floats, left_out: Floats) -> Interval:
    """One of `intervals`, from scores (seeds,) and scores without each group (groups, seeds)."""
    value, tail, (low, high) = float(values.mean()), (1 - LEVEL) / 2, _bounds(metric, values)
    kept = _with_data(metric, groups)
    sizes, left_out = groups.sizes[kept], left_out[kept].mean(axis=1)
    if len(sizes) < 2:
        return Interval(value, low, high)
    error, df = _standard_error(sizes, left_out, [values])
    margin = error * float(stdtrit(df, 1 - tail))
    limit = np.inf if metric.high is None else metric.high
    if margin == 0 and value in (low, metric.high):
        edge = (high - low) * tail ** (1 / len(sizes))
        return Interval(value, *((low + edge, high) if value > low else (low, high - edge)))
    if margin == 0 and metric.chance is not None and abs(value - metric.chance) < 1e-9:
        return Interval(value, value, value)
    if margin == 0:  # as if each group were right or wrong as a whole
        variance = (value - low) * (high - value) or (value - low) ** 2
        margin = (variance / len(left_out)) ** 0.5 * float(stdtrit(df, 1 - tail))
    if value <= low or value >= limit:
        return Interval(value, max(low, value - margin), min(limit, value + margin))
    if metric.high is None:
        margin /= value - low
        if error and min(left_out.min(), values.min()) > low:
            logs = np.log(left_out - low)
            by_seed = [np.log(values - low)]
            error, df = _standard_error(sizes, logs, by_seed, _excess_kurtosis(logs))
            margin = error * float(stdtrit(df, 1 - tail))
        ends = [low + (value - low) * float(np.exp(end)) for end in (-margin, margin)]
    else:
        share = (value - low) / (high - low)
        margin /= (high - low) * share * (1 - share)
        ends = [low + (high - low) * float(expit(logit(share) + end)) for end in (-margin, margin)]
    return Interval(value, *ends)


def _excess_kurtosis(values: Floats) -> float:
    """Excess of the kurtosis of values (N,) over the mean of N normal ones; at least 0."""
    count, squares = len(values), np.square(values - values.mean())
    if not squares.any():
        return 0.0
    kurtosis = float(np.square(squares).mean() / squares.mean() ** 2)
    return max(0.0, kurtosis - 3 * (count - 1) / (count + 1))


def _bounds(metric: Metric, *values: Floats) -> tuple[float, float]:
    """The bounds of a metric; a missing one is `fallback_bound`, or a value beyond it."""
    largest = max(metric.fallback_bound, float(np.concatenate(values).max()))
    return metric.low, largest if metric.high is None else metric.high
