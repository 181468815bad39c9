"""Ranges for the scores of a rerun, from the variation between trainings.

Two runs of a study score two trainings on the same test records. Write a score as `m + r + a`: `m`
is the mean of the recipe, `r` the effect of these records on every training, and `a` the effect of
this training on these records. A rerun has another `a`; `m` and `r` are the same in both runs and
cancel. So the 95% interval of a study, which covers the choice of records, does not apply to a
rerun. The deviation of `a` does. It is estimated from seeds: trainings scored on the same records.

From `n` trainings with mean `x` and deviation `s`, the mean of `k` further ones lies within
`x ± t * s * sqrt(1/k + 1/n)` (the prediction interval of a normal variable, t of Student's
distribution). Three seeds are few, and a study has many scores. So a score is outside only if it is
outside two such intervals:

- A pooled one: `s` is pooled over the experiments of a test set, which have the same metric. The
  95% hold for all scores of the study together (Sidak's correction). It is narrow, and correct if
  all experiments vary alike.
- One of the experiment's own seeds. The 95% hold for its scores on all test sets. It is for
  experiments that vary more than the others.

An experiment whose seeds all have the same score, such as one without random numbers, does not vary
and is left out of the pooled deviation. A rerun must have its score, except for rounding: scores
have DIGITS decimals, so sums that differ in their last bits round to the same or to neighbours.

`benchmarks/reproduction.py` simulates how many valid reruns are inside, and how many broken ones
are outside. A rerun with the same seed on another CPU varies no more than one with another seed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, variance
from typing import NamedTuple

from wxb.metrics import DIGITS, LEVEL

# The distance of neighbours; the binary forms of scores up to 1,000 are at most 1e-12 wrong.
ROUNDING = 10**-DIGITS + 1e-12

Runs = Mapping[str, Mapping[str, Sequence[float]]]  # scores of each seed, by metric and experiment


class Range(NamedTuple):
    """An interval with both ends included."""

    low: float
    high: float

    def __contains__(self, value: object) -> bool:
        return isinstance(value, (int, float)) and self.low <= value <= self.high


def ranges(runs: Runs, trainings: int = 1) -> dict[str, dict[str, Range]]:
    """The ranges of a rerun's scores by metric and experiment; see the module.

    `runs` are the known trainings, two or more of each experiment. A score of the rerun is the mean
    of `trainings` new ones.
    """
    varying = {
        metric: {name: scores for name, scores in members.items() if len({*scores}) > 1}
        for metric, members in runs.items()
    }
    count = max(1, sum(map(len, varying.values())))
    levels = LEVEL ** (1 / count), LEVEL ** (1 / len(runs))
    return {
        metric: {
            name: Range(scores[0] - ROUNDING, scores[0] + ROUNDING)
            for name, scores in members.items()
        }
        | _ranges(varying[metric], trainings, *levels)
        for metric, members in runs.items()
    }


def _ranges(
    runs: Mapping[str, Sequence[float]], trainings: int, pooled_level: float, own_level: float
) -> dict[str, Range]:
    """The ranges of one metric; the levels are those of the two intervals."""
    freedom = {name: len(scores) - 1 for name, scores in runs.items()}
    variances = {name: variance(scores) for name, scores in runs.items()}
    total_freedom = sum(freedom.values())
    result = {}
    for name, scores in runs.items():
        pooled = sum(freedom[each] * variances[each] for each in runs) / total_freedom
        reach = math.sqrt(1 / trainings + 1 / len(scores)) * max(
            _quantile(pooled_level, total_freedom) * math.sqrt(pooled),
            _quantile(own_level, freedom[name]) * math.sqrt(variances[name]),
        )
        result[name] = Range(fmean(scores) - reach, fmean(scores) + reach)
    return result


def _quantile(level: float, freedom: int) -> float:
    """The bound that Student's t stays below in absolute value with probability `level`."""
    from scipy.special import stdtrit  # scipy.stats takes a second to import

    return float(stdtrit(freedom, (1 + level) / 2))
