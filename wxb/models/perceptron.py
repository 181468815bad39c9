"""The perceptron: one unit that draws one straight line, and two ways to teach it, in NumPy.

Both rules begin with all weights at 0, so nothing in them is left to chance. What no such unit can
learn is in Minsky and Papert (1969), "Perceptrons".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Classes = NDArray[np.int64]


@dataclass(frozen=True)
class Perceptron:
    """A linear threshold unit: class 1 where w·x + b > 0, and class 0 elsewhere."""

    w: Floats  # (D,)
    b: float

    def activation(self, x: Floats) -> Floats:  # (N, D) -> (N,)
        """The weighted sum before the threshold: its sign is the side of the line."""
        sums: Floats = x @ self.w + self.b
        return sums

    def predict(self, x: Floats) -> Classes:  # (N, D) -> (N,)
        """The classes, 0 or 1."""
        return (self.activation(x) > 0).astype(np.int64)


def by_steps(
    x: Floats,  # (N, D)
    y: Classes,  # (N,), 0 or 1
    *,
    epochs: int,
    rate: float = 1.0,
) -> tuple[Perceptron, list[int]]:
    """Rosenblatt's rule: take the points in turn, and move towards those that are wrong.

    Gives the unit and its mistakes in each pass over the points; stops after a pass without any.
    Where a line with margin g divides points of norm at most R (both with a 1 appended for the
    bias), no more than (R / g)² mistakes are made in all, whatever the rate; where none does, the
    rule goes on for ever.

    Sources: Rosenblatt (1958), "The perceptron"; the bound: Novikoff (1962), "On convergence
    proofs for perceptrons".
    """
    w, b = np.zeros(x.shape[1]), 0.0
    mistakes: list[int] = []
    for _ in range(epochs):
        wrong = 0
        for point, wanted in zip(x, y, strict=True):
            error = wanted - int(w @ point + b > 0)  # 1, 0 or -1
            w = w + rate * error * point
            b += rate * error
            wrong += abs(error)
        mistakes.append(int(wrong))
        if not wrong:
            break
    return Perceptron(w, float(b)), mistakes


def by_descent(
    x: Floats,  # (N, D)
    y: Classes,  # (N,), 0 or 1
    *,
    epochs: int,
    rate: float,
) -> tuple[Perceptron, list[float]]:
    """Gradient descent on the mean squared error between w·x + b and the targets -1 and 1.

    Gives the unit and its error before each step, all points at once. The error has one minimum,
    that of least squares, and a rate that is small enough leads there whether or not a line
    divides the points: half of E's gradient by w is the mean of (w·x + b - t) x.

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
