"""The perceptron, one linear threshold unit, and two rules that train it, in NumPy.

Both rules start with all weights at 0, so they are deterministic. For the limits of such a unit see
Minsky and Papert (1969), "Perceptrons".
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Classes = NDArray[np.int64]


@dataclass(frozen=True)
class Perceptron:
    """A linear threshold unit: class 1 if w·x + b > 0, else class 0."""

    w: Floats  # (D,)
    b: float

    def activation(self, x: Floats) -> Floats:  # (N, D) -> (N,)
        """The weighted sum w·x + b before the threshold."""
        return x @ self.w + self.b

    def predict(self, x: Floats) -> Classes:  # (N, D) -> (N,)
        """The classes, 0 or 1."""
        return (self.activation(x) > 0).astype(np.int64)


def train_by_steps(
    x: Floats,  # (N, D)
    y: Classes,  # (N,), 0 or 1
    *,
    epochs: int,
    rate: float = 1.0,
) -> tuple[Perceptron, list[int]]:
    """Train by Rosenblatt's rule: update the weights after each misclassified point.

    Returns the unit and its mistakes in each epoch; stops after an epoch without any. If a line
    with margin g separates points of norm at most R (both with a 1 appended for the bias), it makes
    at most (R / g)² mistakes in all, at any rate. Otherwise the rule never converges.

    Sources: Rosenblatt (1958), "The perceptron"; the bound: Novikoff (1962), "On convergence
    proofs for perceptrons".
    """
    w, b = np.zeros(x.shape[1]), 0.0
    mistakes: list[int] = []
    for _ in range(epochs):
        errors = 0
        for point, target in zip(x, y, strict=True):
            error = target - int(w @ point + b > 0)  # 1, 0 or -1
            w = w + rate * error * point
            b += rate * error
            errors += abs(error)
        mistakes.append(int(errors))
        if not errors:
            break
    return Perceptron(w, float(b)), mistakes


def train_by_descent(
    x: Floats,  # (N, D)
    y: Classes,  # (N,), 0 or 1
    *,
    epochs: int,
    rate: float,
) -> tuple[Perceptron, list[float]]:
    """Train by gradient descent on the mean squared error of w·x + b with targets -1 and 1.

    Returns the unit and the error before each step, over all points. With a small enough rate it
    converges to the least squares solution, whether or not a line separates the points. The
    gradient with respect to w is twice the mean of (w·x + b - t) x.

    Source: Widrow and Hoff (1960), "Adaptive switching circuits", here over all points at once.
    """
    t = 2.0 * y - 1  # (N,)
    w, b = np.zeros(x.shape[1]), 0.0
    errors: list[float] = []
    for _ in range(epochs):
        residual = x @ w + b - t  # (N,)
        errors.append(float(np.mean(residual**2)))
        w = w - rate * 2 * (residual @ x) / len(x)
        b -= rate * 2 * float(residual.mean())
    return Perceptron(w, b), errors
