"""Logic gates by a perceptron and by an MLP: what one straight line can divide, and what not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from wxb.core.params import Params
from wxb.core.params.lessons import GatesLesson
from wxb.lessons import Lesson, Part, Table
from wxb.models.mlp import MLP, TorchMLP
from wxb.models.perceptron import by_descent, by_steps
from wxb.reporting.charts.figures import Curve, Line, curves, regions
from wxb.reporting.charts.formatting import listed

Floats = NDArray[np.float64]
Classes = NDArray[np.int64]

INPUTS = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
GATES = {"OR": (0, 1, 1, 1), "AND": (0, 0, 0, 1), "XOR": (0, 1, 1, 0), "XNOR": (1, 0, 0, 1)}
MEASURES = {
    "perceptron steps": "mistakes",
    "perceptron descent": "mean squared error",
    "MLP numpy": "cross-entropy",
}


class Learnt(NamedTuple):
    """A model that was taught one gate, and how that went."""

    score: Callable[[Floats], Floats]  # (N, 2) -> (N,): above 0 it says 1, else 0
    curve: Curve  # mistakes or loss by pass
    predicted: Classes  # (4,), for INPUTS


def run(params: Params, name: str) -> Lesson:
    """Teach every model every gate."""
    settings: GatesLesson = params.named("lessons", name)
    taught = {
        gate: _teach(np.array(wanted), settings, params.seed) for gate, wanted in GATES.items()
    }
    models = list(taught["OR"])
    accuracy = {
        gate: {
            model: float(np.mean(learnt.predicted == GATES[gate])) for model, learnt in by.items()
        }
        for gate, by in taught.items()
    }
    learnt = {width: _share_learnt(width, settings) for width in settings.widths}
    return Lesson(
        metrics={
            **{
                f"xor_{model}".lower().replace(" ", "_"): value
                for model, value in accuracy["XOR"].items()
            },
            **{f"xor_learnt_by_{width}": share for width, share in learnt.items()},
        },
        answer=_answer(accuracy, settings.hidden),
        facts=[f"{len(GATES)} gates", f"{len(models)} models", f"{settings.epochs} passes at most"],
        parts=[
            Part(
                "Accuracy",
                [
                    "A gate has four inputs; accuracy is the share of them that is answered right"
                    " after training on the same four.",
                ],
                tables={
                    "": Table(
                        ["gate", *models],
                        [[gate, *by.values()] for gate, by in accuracy.items()],
                        [list(by.values()) for by in accuracy.values()],
                    )
                },
            ),
            Part(
                "Why no perceptron learns XOR",
                [
                    "A perceptron says 1 where w₁x₁ + w₂x₂ + b > 0. For XOR it has to say 1 at"
                    " (0, 1) and (1, 0), so w₂ + b > 0 and w₁ + b > 0; together w₁ + w₂ + 2b > 0.",
                    "It has to say 0 at (0, 0) and (1, 1), so b ≤ 0 and w₁ + w₂ + b ≤ 0; together"
                    " w₁ + w₂ + 2b ≤ 0. Both cannot be: one of the four answers is wrong, whatever"
                    " the weights, and accuracy is 3/4 at most. XNOR is XOR with 0 and 1 swapped.",
                ],
            ),
            _part(
                "The perceptron, taught by steps",
                "Rosenblatt’s rule moves the line when a point is on the wrong side, and stops"
                " after a pass without a mistake. Where no line divides the points, none comes.",
                "perceptron steps",
                taught,
            ),
            _part(
                "The perceptron, taught by descent",
                "Gradient descent on the mean squared error ends at the least squares solution. For"
                " XOR and XNOR that is 0 everywhere, where the weights began: every input counts"
                " as 0, and half of the answers are right.",
                "perceptron descent",
                taught,
            ),
            _part(
                "The MLP",
                f"{settings.hidden} hidden units draw {settings.hidden} lines, and the last layer"
                " weighs what side of each a point is on. In NumPy the gradients are written out;"
                " in torch, autograd finds them. Both began with the same weights, and after"
                f" training the largest difference between their answers is {_gap(taught):.1g}.",
                "MLP numpy",
                taught,
            ),
            Part(
                "How many hidden units?",
                [
                    "Two could do: ReLU(x₁ + x₂) − 2 ReLU(x₁ + x₂ − 1) is XOR. But descent has to"
                    " find such weights, and from most beginnings it stops where no small step"
                    " helps. With more units than are needed, some of them begin well enough.",
                ],
                tables={
                    f"Share of {settings.starts} random beginnings that end with XOR learnt": Table(
                        ["hidden units", "learnt"],
                        [[str(width), share] for width, share in learnt.items()],
                        [[share] for share in learnt.values()],
                    )
                },
            ),
            Part(
                "How they came there",
                ["Each model has its own measure of what is still wrong, so compare gates only."],
                {
                    f"{model}: {measure}": curves(
                        [
                            Line(gate, i, by[model].curve)
                            for i, (gate, by) in enumerate(taught.items())
                        ],
                        title=measure,
                        step="pass",
                    )
                    for model, measure in MEASURES.items()
                },
                list(GATES),
            ),
        ],
    )


def _teach(wanted: Classes, settings: GatesLesson, seed: int) -> dict[str, Learnt]:
    """Every model, by name, taught one gate."""
    epochs, rate = settings.epochs, settings.learning_rate
    stepped, mistakes = by_steps(INPUTS, wanted, epochs=epochs)
    descended, errors = by_descent(INPUTS, wanted, epochs=epochs, rate=rate)
    network = MLP([2, settings.hidden, 2], seed=seed)
    twin = TorchMLP(network)
    x, y = torch.from_numpy(INPUTS), torch.from_numpy(wanted)
    losses = [network.step(INPUTS, wanted, rate=rate) for _ in range(epochs)]
    twins = [twin.step(x, y, rate=rate) for _ in range(epochs)]

    def of_twin(points: Floats) -> Floats:
        with torch.no_grad():
            probabilities: Floats = twin(torch.from_numpy(points)).softmax(1).numpy()
        return 2 * probabilities[:, 1] - 1

    def learnt(score: Callable[[Floats], Floats], history: list[float]) -> Learnt:
        curve = list(enumerate(history, start=1))
        return Learnt(score, curve, (score(INPUTS) > 0).astype(np.int64))

    return {
        "perceptron steps": learnt(stepped.activation, [float(count) for count in mistakes]),
        "perceptron descent": learnt(descended.activation, errors),
        "MLP numpy": learnt(lambda points: 2 * network.probabilities(points)[:, 1] - 1, losses),
        "MLP torch": learnt(of_twin, twins),
    }


def _share_learnt(width: int, settings: GatesLesson) -> float:
    """From how many of the beginnings an MLP with so many hidden units learns XOR."""
    wanted = np.array(GATES["XOR"])
    learnt = 0
    for seed in range(settings.starts):
        network = MLP([2, width, 2], seed=seed)
        for _ in range(settings.epochs):
            network.step(INPUTS, wanted, rate=settings.learning_rate)
        learnt += bool((network.predict(INPUTS) == wanted).all())
    return learnt / settings.starts


def _part(title: str, text: str, model: str, taught: Mapping[str, Mapping[str, Learnt]]) -> Part:
    """Where a model says 1, by gate."""
    return Part(
        title,
        [text],
        {
            f"{gate}: {sum(by[model].predicted == GATES[gate])} of 4 right": regions(
                by[model].score, INPUTS, GATES[gate]
            )
            for gate, by in taught.items()
        },
    )


def _answer(accuracy: Mapping[str, Mapping[str, float]], hidden: int) -> str:
    def learns(kind: str) -> str:
        gates = [
            gate
            for gate, by in accuracy.items()
            if any(value == 1 for model, value in by.items() if model.startswith(kind))
        ]
        return listed(gates) or "nothing"

    return (
        f"A perceptron learns {learns('perceptron')};"
        f" an MLP with {hidden} hidden units learns {learns('MLP')}."
    )


def _gap(taught: Mapping[str, Mapping[str, Learnt]]) -> float:
    """The largest difference between the answers of the MLP and its twin, of all gates."""
    return max(
        float(np.abs(by["MLP numpy"].score(INPUTS) - by["MLP torch"].score(INPUTS)).max())
        for by in taught.values()
    )
