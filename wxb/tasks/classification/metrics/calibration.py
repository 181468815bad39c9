"""Whether a system is as often right as it says: expected calibration error, from sums.

Source: Guo et al. (2017), "On Calibration of Modern Neural Networks": bins of equal width, and a
temperature that is chosen on validation records.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wxb.metrics import DIGITS

BINS = 15
EDGES = np.linspace(0, 1, BINS + 1)


def histogram(right: NDArray[np.bool_], confidences: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each record (N,) its bin, right in it, and confidence in it: (N, 3 * BINS)."""
    places = np.clip(np.ceil(confidences * BINS) - 1, 0, BINS - 1)
    here = (places[:, None] == np.arange(BINS)).astype(float)  # (N, BINS)
    return np.concatenate([here, here * right[:, None], here * confidences[:, None]], axis=1)


def error(sums: NDArray[Any]) -> NDArray[Any]:
    """How far apart confidence and accuracy are (...), mean over records, of (..., 3 * BINS)."""
    number, right, confidence = np.split(sums, 3, axis=-1)
    total: NDArray[Any] = number.sum(axis=-1)
    found: NDArray[Any] = np.abs(confidence - right).sum(axis=-1) / np.maximum(total, 1)
    return found


def rows(sums: NDArray[Any]) -> list[dict[str, float]]:
    """The bins that hold records: their edges, records, mean confidence and accuracy."""
    columns = zip(EDGES[:-1], EDGES[1:], *np.split(sums, 3), strict=True)
    return [
        {
            "from": round(float(low), 4),
            "to": round(float(high), 4),
            "records": int(number),
            "confidence": round(float(confidence / number), DIGITS),
            "accuracy": round(float(right / number), DIGITS),
        }
        for low, high, number, right, confidence in columns
        if number
    ]


def softmax(logits: NDArray[np.float64], temperature: float = 1.0) -> NDArray[np.float64]:
    """Probabilities (N, K) of logits (N, K)."""
    scaled = logits / temperature
    powers = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    likely: NDArray[np.float64] = powers / powers.sum(axis=1, keepdims=True)
    return likely


def temperature(logits: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    """The temperature at which labels (N,) are likeliest under logits (N, K); 1 without records."""
    from scipy.optimize import minimize_scalar

    if not len(labels):
        return 1.0

    def loss(log: float) -> float:
        likely = softmax(logits, float(np.exp(log)))[np.arange(len(labels)), labels]
        return -float(np.log(np.maximum(likely, 1e-300)).mean())

    found = minimize_scalar(loss, bounds=(np.log(0.05), np.log(20)), method="bounded")
    return round(float(np.exp(found.x)), 3)
