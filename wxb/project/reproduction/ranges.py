"""Ranges in which the scores of an honest rerun lie: what trainings vary.

Two runs of a study score two trainings on the same test records. Call a score `m + r + a`: `m` is
what the recipe reaches on average, `r` what these records add for every training, and `a` what this
training adds on these records. A rerun has another `a`; `m` and `r` are the same in both runs and
cancel. So the 95% interval of a study, which is about other records, does not limit a rerun. What
limits it is the deviation of `a`, and seeds show that: they are trainings scored on these very
records.

From `n` trainings with mean `x` and deviation `s`, the mean of `k` further ones lies within
`x ± t * s * sqrt(1/k + 1/n)` (the prediction interval of a normal variable, t of Student's
distribution). Three seeds are few, and a study has many scores, so a score is outside only where
two such intervals say so:

- The pooled one: `s` is pooled over the experiments of a test set, which have the same metric. The
  95% hold for all scores of the study together (Sidak's correction). It is narrow, and right where
  all experiments vary alike.
- The one of the experiment's own seeds, whose 95% hold for its scores on all test sets. It
  protects experiments that vary more than the others.

`benchmarks/reproduction.py` simulates how many honest reruns are inside, and how many broken ones
are outside. A rerun with the same seed on another CPU differs by no more than one with another
seed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, variance
from typing import NamedTuple

from wxb.metrics import LEVEL

Runs = Mapping[str, Mapping[str, Sequence[float]]]  # scores of each seed, by metric and experiment


class Range(NamedTuple):
    """Both ends included."""

    low: float
    high: float

    def __contains__(self, value: object) -> bool:
        return isinstance(value, (int, float)) and self.low <= value <= self.high


def ranges(runs: Runs, trainings: int = 1) -> dict[str, dict[str, Range]]:
    """The ranges of a rerun's scores by metric and experiment; see above.

    `runs` are the known trainings, two or more of each experiment. A rerun's score is the mean of
    `trainings` further ones.
    """
    scores = sum(map(len, runs.values()))
    every, own = LEVEL ** (1 / scores), LEVEL ** (1 / len(runs))
    return {metric: _ranges(found, trainings, every, own) for metric, found in runs.items()}


def _ranges(
    runs: Mapping[str, Sequence[float]], trainings: int, level: float, own: float
) -> dict[str, Range]:
    """The ranges of one metric; `level` and `own` are those of the two intervals."""
    freedom = {name: len(scores) - 1 for name, scores in runs.items()}
    variances = {name: variance(scores) for name, scores in runs.items()}
    every = sum(freedom.values())
    pooled = sum(freedom[name] * variances[name] for name in runs) / every
    found = {}
    for name, scores in runs.items():
        reach = math.sqrt(1 / trainings + 1 / len(scores)) * max(
            _quantile(level, every) * math.sqrt(pooled),
            _quantile(own, freedom[name]) * math.sqrt(variances[name]),
        )
        found[name] = Range(fmean(scores) - reach, fmean(scores) + reach)
    return found


def _quantile(level: float, freedom: int) -> float:
    """The bound that Student's t stays below in absolute value with probability `level`."""
    from scipy.special import stdtrit  # scipy.stats takes a second longer

    return float(stdtrit(freedom, (1 + level) / 2))
