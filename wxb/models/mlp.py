"""A multilayer perceptron twice: by hand in NumPy, its gradients included, and in torch.

Layers are Wx + b with W of shape (out, in), as torch keeps it, with ReLU between them and softmax
cross-entropy at the end. Both compute in float64, so what they give can be compared to the last
digits.

Source of the gradients: Rumelhart, Hinton and Williams (1986), "Learning representations by
back-propagating errors".
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

Floats = NDArray[np.float64]
Classes = NDArray[np.int64]
Layer = tuple[Floats, Floats]  # W (out, in) and b (out,), or their gradients


class MLP:
    """A network of layers of the given sizes: inputs first, classes last."""

    def __init__(self, sizes: Sequence[int], *, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.layers: list[Layer] = [
            (he_normal(rng, outputs, inputs), np.zeros(outputs))
            for inputs, outputs in pairwise(sizes)
        ]

    def forward(self, x: Floats) -> list[Floats]:  # (N, D)
        """The input of every layer, x first, and the logits (N, K) last."""
        values = [x]
        for number, (w, b) in enumerate(self.layers, start=1):
            z = values[-1] @ w.T + b  # (N, out)
            values.append(np.maximum(z, 0) if number < len(self.layers) else z)
        return values

    def backward(self, values: Sequence[Floats], y: Classes) -> list[Layer]:
        """The gradients of the loss by W and b of every layer.

        `values` are those of `forward`, and y (N,) the classes that were wanted.
        """
        logits = values[-1]
        # Of softmax and cross-entropy together: what is said minus what is true.
        gradient = softmax(logits)  # (N, K)
        gradient[np.arange(len(y)), y] -= 1
        gradient /= len(y)
        gradients: list[Layer] = []
        for (w, _), before in zip(reversed(self.layers), reversed(values[:-1]), strict=True):
            gradients.append((gradient.T @ before, gradient.sum(axis=0)))
            # Through W, then through the ReLU before it: nothing passes where that gave 0. The
            # last turn computes it for x, which nobody needs.
            gradient = (gradient @ w) * (before > 0)  # (N, in)
        return gradients[::-1]

    def step(self, x: Floats, y: Classes, *, rate: float) -> float:
        """One step of gradient descent over all points; gives the loss before it."""
        values = self.forward(x)
        gradients = self.backward(values, y)
        self.layers = [
            (w - rate * dw, b - rate * db)
            for (w, b), (dw, db) in zip(self.layers, gradients, strict=True)
        ]
        return cross_entropy(values[-1], y)

    def probabilities(self, x: Floats) -> Floats:  # (N, D) -> (N, K)
        """How likely each class is."""
        return softmax(self.forward(x)[-1])

    def predict(self, x: Floats) -> Classes:  # (N, D) -> (N,)
        """The likeliest class of each point."""
        classes: Classes = self.forward(x)[-1].argmax(axis=1)
        return classes


class TorchMLP(nn.Module):
    """The same network, with a copy of the same weights, for autograd to differentiate."""

    def __init__(self, twin: MLP) -> None:
        super().__init__()
        self.layers = nn.ModuleList()
        for w, b in twin.layers:
            layer = nn.Linear(w.shape[1], w.shape[0], dtype=torch.float64)
            layer.load_state_dict({"weight": torch.from_numpy(w), "bias": torch.from_numpy(b)})
            self.layers.append(layer)

    def forward(self, x: Tensor) -> Tensor:  # (N, D) -> (N, K)
        """The logits."""
        *hidden, last = self.layers
        for layer in hidden:
            x = layer(x).relu()  # (N, out)
        logits: Tensor = last(x)
        return logits

    def step(self, x: Tensor, y: Tensor, *, rate: float) -> float:
        """One step of gradient descent over all points; gives the loss before it."""
        loss = nn.functional.cross_entropy(self(x), y)
        gradients = torch.autograd.grad(loss, list(self.parameters()))
        with torch.no_grad():
            for parameter, gradient in zip(self.parameters(), gradients, strict=True):
                parameter.sub_(rate * gradient)
        return loss.item()


def he_normal(rng: np.random.Generator, outputs: int, inputs: int) -> Floats:
    """Weights (outputs, inputs) of variance 2 / inputs.

    So the spread of what ReLU layers give neither fades nor grows with depth: He et al. (2015),
    "Delving deep into rectifiers", section 2.2.
    """
    return rng.normal(0, np.sqrt(2 / inputs), size=(outputs, inputs))


def softmax(logits: Floats) -> Floats:  # (N, K) -> (N, K)
    """Logits as probabilities; their maximum is subtracted, so that none overflows."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities: Floats = powers / powers.sum(axis=1, keepdims=True)
    return probabilities


def cross_entropy(logits: Floats, y: Classes) -> float:  # (N, K), (N,)
    """The mean of -log p(y), in nats, computed without the detour over probabilities."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_sums = np.log(np.exp(shifted).sum(axis=1))  # (N,)
    return float(np.mean(log_sums - shifted[np.arange(len(y)), y]))
