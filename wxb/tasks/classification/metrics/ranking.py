"""The area under the ROC curve from sums over records.

It is the share of pairs, one record of the class and one that is not, in which the first is scored
higher; pairs do not add up over records, counts in bins of scores do. Bins are cut at quantiles of
a run's scores, and two records of one bin count as tied. Where there are no more scores than BINS
the area is exact, else off by half the share of pairs that fall into one bin, at most.

Source: Fawcett (2006), "An introduction to ROC analysis".
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

BINS = 100


def histogram(positive: NDArray[np.bool_], scores: NDArray[np.float64]) -> NDArray[np.bool_]:
    """In which bin each record (N,) is: (N, 2 * BINS), of the class, then the others."""
    values, places = np.unique(scores, return_inverse=True)
    if len(values) > BINS:
        cuts = np.quantile(scores, np.arange(1, BINS) / BINS, method="nearest")
        places = np.searchsorted(np.unique(cuts), scores, side="right")
    here = places[:, None] == np.arange(BINS)  # (N, BINS)
    return np.concatenate([here & positive[:, None], here & ~positive[:, None]], axis=1)


def area(sums: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The area (...) of sums (..., 2 * BINS), and where there is one: records of both kinds."""
    positive, negative = sums[..., :BINS], sums[..., BINS:]
    below = np.cumsum(negative, axis=-1) - negative / 2
    won = (positive * below).sum(axis=-1)
    pairs = positive.sum(axis=-1) * negative.sum(axis=-1)
    return np.divide(won, pairs, out=np.zeros(won.shape), where=pairs > 0), pairs > 0
