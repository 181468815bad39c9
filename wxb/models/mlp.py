"""A multilayer perceptron: in NumPy with its gradients written out, and in torch.

Layers are Wx + b with W of shape (out, in), as in torch, with ReLU between them and softmax
cross-entropy at the end. Both compute in float64, so their outputs agree to the last digits.

Source of the gradients: Rumelhart, Hinton and Williams (1986), "Learning representations by
back-propagating errors".
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from wxb.models.perceptron import Classes, Floats

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
        for index, (w, b) in enumerate(self.layers, start=1):
            z = values[-1] @ w.T + b  # (N, out)
            values.append(np.maximum(z, 0) if index < len(self.layers) else z)
        return values

    def backward(self, values: Sequence[Floats], y: Classes) -> list[Layer]:
        """Gradients of the mean loss with respect to each W and b; `forward` returned `values`."""
        logits = values[-1]
        # Of softmax and cross-entropy together: predicted minus true probabilities.
        gradient = softmax(logits)  # (N, K)
        gradient[np.arange(len(y)), y] -= 1
        gradient /= len(y)
        gradients: list[Layer] = []
        for (w, _), inputs in zip(reversed(self.layers), reversed(values[:-1]), strict=True):
            gradients.append((gradient.T @ inputs, gradient.sum(axis=0)))
            # Through W, then through the ReLU before it, which blocks it where its output was 0.
            # The last iteration computes the gradient of x, which is unused.
            gradient = (gradient @ w) * (inputs > 0)  # (N, in)
        return gradients[::-1]

    def step(self, x: Floats, y: Classes, *, rate: float) -> float:
        """Take a step of gradient descent over all points; returns the loss before it."""
        values = self.forward(x)
        gradients = self.backward(values, y)
        self.layers = [
            (w - rate * dw, b - rate * db)
            for (w, b), (dw, db) in zip(self.layers, gradients, strict=True)
        ]
        return cross_entropy(values[-1], y)

    def probabilities(self, x: Floats) -> Floats:  # (N, D) -> (N, K)
        """Probability of each class."""
        return softmax(self.forward(x)[-1])

    def predict(self, x: Floats) -> Classes:  # (N, D) -> (N,)
        """The most likely class of each point."""
        return self.forward(x)[-1].argmax(axis=1)


class TorchMLP(nn.Module):
    """The network of an `MLP` with a copy of its weights, differentiated by autograd."""

    def __init__(self, mlp: MLP) -> None:
        super().__init__()
        self.layers = nn.ModuleList()
        for w, b in mlp.layers:
            layer = nn.Linear(w.shape[1], w.shape[0], dtype=torch.float64)
            layer.load_state_dict({"weight": torch.from_numpy(w), "bias": torch.from_numpy(b)})
            self.layers.append(layer)

    def forward(self, x: Tensor) -> Tensor:  # (N, D) -> (N, K)
        """The logits."""
        *hidden, last = self.layers
        for layer in hidden:
            x = layer(x).relu()  # (N, out)
        return last(x)

    def step(self, x: Tensor, y: Tensor, *, rate: float) -> float:
        """Take a step of gradient descent over all points; returns the loss before it."""
        loss = nn.functional.cross_entropy(self(x), y)
        gradients = torch.autograd.grad(loss, list(self.parameters()))
        with torch.no_grad():
            for parameter, gradient in zip(self.parameters(), gradients, strict=True):
                parameter.sub_(rate * gradient)
        return loss.item()


def he_normal(rng: np.random.Generator, outputs: int, inputs: int) -> Floats:
    """Random weights (outputs, inputs) of variance 2 / inputs.

    They keep the variance of ReLU layers constant over depth: He et al. (2015), "Delving deep into
    rectifiers", section 2.2.
    """
    return rng.normal(0, np.sqrt(2 / inputs), size=(outputs, inputs))


def softmax(logits: Floats) -> Floats:  # (N, K) -> (N, K)
    """Probabilities of logits; the maximum is subtracted to avoid overflow."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def cross_entropy(logits: Floats, y: Classes) -> float:  # (N, K), (N,)
    """The mean of -log p(y), in nats, computed from logits directly."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_sums = np.log(np.exp(shifted).sum(axis=1))  # (N,)
    return float(np.mean(log_sums - shifted[np.arange(len(y)), y]))
