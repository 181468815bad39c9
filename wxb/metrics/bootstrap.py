"""Percentile bootstrap over documents for span scores.

Documents, not spans, are resampled with replacement: spans of one document are not independent.
Every call with the same arguments gives the same numbers. With a handful of documents the
intervals are too narrow and the p values too small, as for any percentile bootstrap.

Sources: Efron & Tibshirani (1993), "An Introduction to the Bootstrap"; Berg-Kirkpatrick, Burkett
& Klein (2012), "An Empirical Investigation of Statistical Significance in NLP".
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wxb.metrics.spans import COLUMNS, prf

# Resampling weights held at once, documents x resamples: 32 MiB of int64.
_BLOCK_CELLS = 2**22


class Interval(NamedTuple):
    """A score in [0, 1] on the given documents and the ends of its confidence interval."""

    value: float
    low: float
    high: float


class Difference(NamedTuple):
    """A difference of two F1 scores in [-1, 1], its confidence interval and two-sided p value."""

    value: float
    low: float
    high: float
    p_value: float


def intervals(
    counts: NDArray[np.int64], *, resamples: int, seed: int, level: float = 0.95
) -> dict[str, Interval]:
    """Give precision, recall and F1 percentile intervals (Efron & Tibshirani 1993, chapter 13).

    `counts` has shape (documents, 3), as from `wxb.metrics.spans.counts`; `level` is the nominal
    coverage. The keys are "precision", "recall" and "f1".

    Raises:
        ValueError: no documents, another shape, `resamples` below 1 or `level` outside (0, 1).
    """
    _check(counts, resamples, level)
    observed = prf(counts.sum(axis=0))
    resampled = prf(_resampled_sums(counts, resamples, seed))
    return {
        name: Interval(value, *_percentiles(values, level))
        for name, value, values in zip(
            ("precision", "recall", "f1"), observed, resampled, strict=True
        )
    }


def paired(
    a: NDArray[np.int64], b: NDArray[np.int64], *, resamples: int, seed: int, level: float = 0.95
) -> Difference:
    """Compare the F1 of systems `a` and `b` (a minus b) on the same resampled documents.

    `a` and `b` have shape (documents, 3), as from `wxb.metrics.spans.counts`, and row i of both is
    the same document. The p value is that of the paired bootstrap test (Berg-Kirkpatrick et al.
    2012), two-sided: how often the resampled differences, shifted to centre on zero, are at least
    as large as the observed one; its smallest value is 1 / (1 + resamples).

    Raises:
        ValueError: no documents, another shape, shapes that differ, `resamples` below 1 or
            `level` outside (0, 1).
    """
    _check(a, resamples, level)
    if b.shape != a.shape:
        raise ValueError(f"found b of shape {b.shape}, expected {a.shape} as for a")
    both = np.stack([a, b], axis=1)
    value = _f1_difference(both.sum(axis=0))
    differences = _f1_difference(_resampled_sums(both, resamples, seed))
    extreme = int(np.sum(np.abs(differences - value) >= abs(value)))
    return Difference(
        float(value), *_percentiles(differences, level), (1 + extreme) / (1 + resamples)
    )


def _check(counts: NDArray[np.int64], resamples: int, level: float) -> None:
    if counts.ndim != 2 or counts.shape[1] != COLUMNS:
        raise ValueError(f"found counts of shape {counts.shape}, expected (documents, {COLUMNS})")
    if len(counts) == 0:
        raise ValueError("found 0 documents, expected at least 1")
    if resamples < 1:
        raise ValueError(f"found {resamples} resamples, expected at least 1")
    if not 0 < level < 1:
        raise ValueError(f"found level {level}, expected a number between 0 and 1")


def _resampled_sums(counts: NDArray[np.int64], resamples: int, seed: int) -> NDArray[np.int64]:
    """Sum the rows of `resamples` draws of as many documents; shape (resamples, ...)."""
    # A multinomial weight is how often a resample holds a document. The generator fills row after
    # row, so the block size bounds memory and leaves the stream of random numbers as it is.
    documents = len(counts)
    uniform = np.full(documents, 1 / documents)
    block = max(1, _BLOCK_CELLS // documents)
    rng = np.random.default_rng(seed)
    columns = counts.reshape(documents, -1)
    sums = [
        rng.multinomial(documents, uniform, size=min(block, resamples - done)) @ columns
        for done in range(0, resamples, block)
    ]
    return np.concatenate(sums).reshape(resamples, *counts.shape[1:])


def _percentiles(values: NDArray[np.float64], level: float) -> tuple[float, float]:
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _f1_difference(sums: NDArray[np.int64]) -> NDArray[np.float64]:
    """Give F1 of the first minus F1 of the second system; `sums` has shape (..., 2, 3)."""
    _, _, f1 = prf(sums)
    return np.asarray(f1[..., 0] - f1[..., 1])
