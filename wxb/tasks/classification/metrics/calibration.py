"""The temperature that calibrates probabilities.

Source: Guo et al. (2017), "On Calibration of Modern Neural Networks".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax


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
