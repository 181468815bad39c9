"""Percentile bootstrap over groups of documents, and over seeds of training.

Scores are functions of statistics that add up over documents, on any scale. Groups are resampled
with replacement, as documents of one template, article, author or speaker are not independent.
Where a system was trained with several seeds, its seeds are drawn anew too, so that intervals tell
what another training may change.
Every call with the same arguments gives the same numbers. With a handful of groups the intervals
are too narrow and the p values too small, as for any percentile bootstrap; so it is with seeds.

Sources: Efron & Tibshirani (1993), "An Introduction to the Bootstrap"; Berg-Kirkpatrick, Burkett
& Klein (2012), "An Empirical Investigation of Statistical Significance in NLP".
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Scores = Callable[[NDArray[Any]], Mapping[str, NDArray[Any]]]  # of sums (..., C): (...) by key

# Resampling weights held at once, groups x resamples: 32 MiB of int64.
_BLOCK_CELLS = 2**22


class Interval(NamedTuple):
    """A score on the given documents and the ends of its confidence interval."""

    value: float
    low: float
    high: float


class Difference(NamedTuple):
    """A difference of two scores, its confidence interval and two-sided p value."""

    value: float
    low: float
    high: float
    p_value: float


def by_group(counts: NDArray[Any], groups: Sequence[str]) -> NDArray[Any]:
    """Sum counts (documents, ...) over the documents of each group: (groups, ...), in their order.

    Raises ValueError unless there is one group for each document.
    """
    if len(groups) != len(counts):
        raise ValueError(f"found {len(groups)} groups, expected {len(counts)}, one a document")
    places = {name: place for place, name in enumerate(dict.fromkeys(groups))}
    sums = np.zeros((len(places), *counts.shape[1:]), dtype=counts.dtype)
    np.add.at(sums, [places[name] for name in groups], counts)
    return sums


def intervals(
    counts: NDArray[Any], scores: Scores, *, resamples: int, seed: int, level: float = 0.95
) -> dict[str, Interval]:
    """Give each of the scores a percentile interval (Efron & Tibshirani 1993, chapter 13).

    `counts` are statistics (groups, C), or (groups, seeds, C) for a system that was trained with
    several seeds, whose score is the mean over them; `level` is the nominal coverage.

    Raises:
        ValueError: no groups, another shape, `resamples` below 1 or `level` outside (0, 1).
    """
    counts = _checked(counts, resamples, level)
    rng = np.random.default_rng(seed)
    observed = scores(counts.sum(axis=0))
    resampled = scores(_resampled_sums(counts, resamples, rng))
    seeds = _drawn_seeds(counts.shape[1], resamples, rng)
    return {
        name: Interval(float(value.mean()), *_percentiles(_means(resampled[name], seeds), level))
        for name, value in observed.items()
    }


def paired(
    a: NDArray[Any],
    b: NDArray[Any],
    score: Callable[[NDArray[Any]], NDArray[Any]],
    *,
    resamples: int,
    seed: int,
    level: float = 0.95,
) -> Difference:
    """Compare one score of systems `a` and `b` (a minus b) on the same resampled groups.

    `a` and `b` have shape (groups, C) or (groups, seeds, C), as for `intervals`, and row i of both
    is the same group; their seeds have nothing in common, and are drawn apart. The p value is that
    of the paired bootstrap test (Berg-Kirkpatrick et al. 2012), two-sided: how often the resampled
    differences, shifted to centre on zero, are at least as large as the observed one; its smallest
    value is 1 / (1 + resamples).

    Raises:
        ValueError: no groups, another shape, numbers of groups that differ, `resamples` below 1 or
            `level` outside (0, 1).
    """
    a, b = _checked(a, resamples, level), _checked(b, resamples, level)
    if len(b) != len(a):
        raise ValueError(f"found b with {len(b)} groups, expected {len(a)} as for a")
    rng = np.random.default_rng(seed)
    both = np.concatenate([a, b], axis=1)
    observed = score(both.sum(axis=0))
    resampled = score(_resampled_sums(both, resamples, rng))
    cut = a.shape[1]
    value = float(observed[:cut].mean() - observed[cut:].mean())
    differences = _means(resampled[:, :cut], _drawn_seeds(cut, resamples, rng)) - _means(
        resampled[:, cut:], _drawn_seeds(b.shape[1], resamples, rng)
    )
    # Means of several seeds differ by rounding where they should not.
    extreme = int(np.sum(np.abs(differences - value) >= abs(value) - 1e-12))
    return Difference(value, *_percentiles(differences, level), (1 + extreme) / (1 + resamples))


def _checked(counts: NDArray[Any], resamples: int, level: float) -> NDArray[Any]:
    """The counts as (groups, seeds, C)."""
    if counts.ndim not in (2, 3) or 0 in counts.shape[1:]:
        raise ValueError(
            f"found counts of shape {counts.shape}, expected (groups, C) or (groups, seeds, C)"
        )
    if len(counts) == 0:
        raise ValueError("found 0 groups, expected at least 1")
    if resamples < 1:
        raise ValueError(f"found {resamples} resamples, expected at least 1")
    if not 0 < level < 1:
        raise ValueError(f"found level {level}, expected a number between 0 and 1")
    return counts.reshape(len(counts), -1, counts.shape[-1])


def _resampled_sums(counts: NDArray[Any], resamples: int, rng: np.random.Generator) -> NDArray[Any]:
    """Sum the rows of `resamples` draws of as many groups; shape (resamples, ...)."""
    # A multinomial weight is how often a resample holds a group. The generator fills row after
    # row, so the block size bounds memory and leaves the stream of random numbers as it is.
    groups = len(counts)
    uniform = np.full(groups, 1 / groups)
    block = max(1, _BLOCK_CELLS // groups)
    columns = counts.reshape(groups, -1)
    sums = [
        rng.multinomial(groups, uniform, size=min(block, resamples - done)) @ columns
        for done in range(0, resamples, block)
    ]
    return np.concatenate(sums).reshape(resamples, *counts.shape[1:])


def _drawn_seeds(seeds: int, resamples: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """For each resample as many seeds as there are, drawn with replacement."""
    return rng.integers(seeds, size=(resamples, seeds))


def _means(scores: NDArray[np.float64], seeds: NDArray[np.int64]) -> NDArray[np.float64]:
    """The mean score of each resample over the seeds drawn for it; both (resamples, seeds)."""
    means: NDArray[np.float64] = np.take_along_axis(scores, seeds, axis=1).mean(axis=1)
    return means


def _percentiles(values: NDArray[np.float64], level: float) -> tuple[float, float]:
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
