"""The area under the ROC curve (AUROC) from sums over records.

The area is the share of pairs, of a positive and a negative record, in which the positive one has
the higher score. Pairs do not add up over records, but counts in bins of scores do. Bins are cut at
quantiles of a run's scores, and two records of one bin count as tied. The area is exact for up to
BINS different scores. With more, the error is at most half the share of pairs within one bin.

Source: Fawcett (2006), "An introduction to ROC analysis".
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wxb.metrics.scorer import ratio

BINS = 100


def histogram(positive: NDArray[np.bool_], scores: NDArray[np.float64]) -> NDArray[np.bool_]:
    """The bin of each record, one-hot (N, 2 * BINS): first the positive bins, then the negative."""
    values, bins = np.unique(scores, return_inverse=True)
    if len(values) > BINS:
        cuts = np.quantile(scores, np.arange(1, BINS) / BINS, method="nearest")
        bins = np.searchsorted(np.unique(cuts), scores, side="right")
    one_hot = bins[:, None] == np.arange(BINS)  # (N, BINS)
    return np.concatenate([one_hot & positive[:, None], one_hot & ~positive[:, None]], axis=1)


def area(sums: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The area (...) of sums (..., 2 * BINS), and whether both kinds of records exist."""
    positive, negative = sums[..., :BINS], sums[..., BINS:]
    below = np.cumsum(negative, axis=-1) - negative / 2
    won = (positive * below).sum(axis=-1)
    pairs = positive.sum(axis=-1) * negative.sum(axis=-1)
    return ratio(won, pairs), pairs > 0
