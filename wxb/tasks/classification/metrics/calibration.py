"""Expected calibration error from sums over records, and the temperature that lowers it.

Source: Guo et al. (2017), "On Calibration of Modern Neural Networks", with bins of equal width.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from wxb.metrics import DIGITS

BINS = 15
EDGES = np.linspace(0, 1, BINS + 1)


def histogram(right: NDArray[np.bool_], confidences: NDArray[np.float64]) -> NDArray[np.float64]:
    """Three one-hot rows of bins for each record: 1, `right` and confidence (N, 3 * BINS)."""
    bins = np.clip(np.ceil(confidences * BINS) - 1, 0, BINS - 1)
    one_hot = (bins[:, None] == np.arange(BINS)).astype(float)  # (N, BINS)
    return np.concatenate(
        [one_hot, one_hot * right[:, None], one_hot * confidences[:, None]], axis=1
    )


def error(sums: NDArray[Any]) -> NDArray[Any]:
    """The expected calibration error (...) of sums (..., 3 * BINS): a mean over records."""
    count, right, confidence = np.split(sums, 3, axis=-1)
    total: NDArray[Any] = count.sum(axis=-1)
    mean: NDArray[Any] = np.abs(confidence - right).sum(axis=-1) / np.maximum(total, 1)
    return mean


def rows(sums: NDArray[Any]) -> list[dict[str, float]]:
    """The bins with records, of sums (3 * BINS,): edges, count, mean confidence and accuracy."""
    columns = zip(EDGES[:-1], EDGES[1:], *np.split(sums, 3), strict=True)
    return [
        {
            "from": round(float(low), 4),
            "to": round(float(high), 4),
            "records": int(count),
            "confidence": round(float(confidence / count), DIGITS),
            "accuracy": round(float(right / count), DIGITS),
        }
        for low, high, count, right, confidence in columns
        if count
    ]


def cross_entropy(
    logits: NDArray[np.float64], labels: NDArray[np.int64], temperature: float = 1.0
) -> float:
    """The mean cross-entropy of logits (N, K) with labels (N,)."""
    likelihoods = softmax(logits / temperature, axis=1)[np.arange(len(labels)), labels]
    return -float(np.log(np.maximum(likelihoods, 1e-300)).mean())


def temperature(logits: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    """The temperature that minimizes the cross-entropy; 1 without records.

    `logits` has the shape (N, K), `labels` (N,).
    """
    from scipy.optimize import minimize_scalar

    if not len(labels):
        return 1.0

    def loss(log: float) -> float:
        return cross_entropy(logits, labels, float(np.exp(log)))

    minimum = minimize_scalar(loss, bounds=(np.log(0.05), np.log(20)), method="bounded")
    return round(float(np.exp(minimum.x)), 3)
