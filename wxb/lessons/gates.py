"""Lesson on logic gates: which ones a perceptron and an MLP can learn."""

from collections.abc import Callable, Mapping

import numpy as np
import torch

from wxb.core.errors import counted
from wxb.core.params import Params
from wxb.core.params.lessons import GatesLesson
from wxb.lessons import Lesson, shares_table
from wxb.models.mlp import MLP, TorchMLP
from wxb.models.perceptron import Classes, Floats, train_by_descent, train_by_steps
from wxb.reporting.figures import regions
from wxb.reporting.formatting import listed
from wxb.reporting.parts import Charts, Section

INPUTS = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
GATES = {"OR": (0, 1, 1, 1), "AND": (0, 0, 0, 1), "XOR": (0, 1, 1, 0), "XNOR": (1, 0, 0, 1)}

DecisionFunction = Callable[[Floats], Floats]  # of a trained model: (N, 2) -> (N,), class 1 above 0
Models = Mapping[str, DecisionFunction]  # by their names

# Texts of the page that do not depend on results.
PROOF = Section(
    "proof",
    "Why no perceptron learns XOR",
    [
        "A perceptron returns 1 if w₁x₁ + w₂x₂ + b > 0. For XOR it must return 1 at (0, 1) and"
        " (1, 0), so w₂ + b > 0 and w₁ + b > 0; the sum is w₁ + w₂ + 2b > 0.",
        "It must return 0 at (0, 0) and (1, 1), so b ≤ 0 and w₁ + w₂ + b ≤ 0; the sum is"
        " w₁ + w₂ + 2b ≤ 0. This is a contradiction: one of the four outputs is wrong, and accuracy"
        " is 3/4 at most. XNOR is XOR with 0 and 1 swapped.",
    ],
)
ACCURACY = (
    "A gate has four inputs. Accuracy is the share of right outputs after training on the same"
    " four."
)
STEPS = (
    "Rosenblatt’s rule moves the line when a point is on the wrong side, and stops after an epoch"
    " without a mistake. If no line separates the points, it runs on."
)
DESCENT = (
    "Gradient descent on the mean squared error converges to the least squares solution. For XOR"
    " and XNOR that is 0 everywhere, as are the initial weights: the output is always 0, and half"
    " of the outputs are right."
)
HIDDEN = (
    "Two are enough: ReLU(x₁ + x₂) − 2 ReLU(x₁ + x₂ − 1) is XOR. But from most initial weights,"
    " descent ends in another minimum. With more units than needed, some of them start well enough."
)


def run(params: Params, name: str) -> Lesson:
    """Train all models on all gates, and MLPs of each width on XOR; metrics are those of XOR."""
    settings: GatesLesson = params.block("lessons", name)
    trained = {gate: _train_models(np.array(y), settings, params.seed) for gate, y in GATES.items()}
    accuracy = {
        gate: {model: _correct_count(gate, score) / len(INPUTS) for model, score in scores.items()}
        for gate, scores in trained.items()
    }
    success = {width: _success_rate(width, settings) for width in settings.widths}
    pairs = [(scores["MLP numpy"], scores["MLP torch"]) for scores in trained.values()]
    difference = max(np.abs(ours(INPUTS) - theirs(INPUTS)).max() for ours, theirs in pairs)
    mlp_text = (
        f"{settings.hidden} hidden units draw {settings.hidden} lines, and the last layer combines"
        " them. In NumPy the gradients are written out; in torch, autograd computes them. Both"
        " start with the same weights. After training, the largest difference between their"
        f" outputs is {difference:.1g}."
    )
    rows = {gate: [*by_model.values()] for gate, by_model in accuracy.items()}
    accuracy_table = shares_table("Accuracy", ["gate", *trained["OR"]], rows)
    success_table = shares_table(
        "Random initial weights that learn XOR",
        ["hidden units", f"share of {settings.starts} that learn XOR"],
        {str(width): [share] for width, share in success.items()},
    )
    return Lesson(
        metrics={
            **{f"xor_{m}".lower().replace(" ", "_"): x for m, x in accuracy["XOR"].items()},
            **{f"xor_learnt_by_{width}": share for width, share in success.items()},
        },
        answer=_answer(accuracy, settings.hidden),
        facts=[
            f"{len(GATES)} gates",
            f"{len(trained['OR'])} models",
            f"{counted(settings.epochs, 'epochs')} at most",
        ],
        sections=[
            Section("accuracy", "Accuracy", [ACCURACY, accuracy_table]),
            PROOF,
            _section("The perceptron, trained by steps", STEPS, "perceptron steps", trained),
            _section("The perceptron, trained by descent", DESCENT, "perceptron descent", trained),
            _section("The MLP", mlp_text, "MLP numpy", trained),
            Section("hidden", "How many hidden units?", [HIDDEN, success_table]),
        ],
    )


def _correct_count(gate: str, score: DecisionFunction) -> int:
    return int(((score(INPUTS) > 0) == GATES[gate]).sum())


def _train_models(targets: Classes, settings: GatesLesson, seed: int) -> Models:
    """Train every model on one gate; returns decision functions by name of the model."""
    epochs, rate = settings.epochs, settings.learning_rate
    by_steps, _ = train_by_steps(INPUTS, targets, epochs=epochs)
    by_descent, _ = train_by_descent(INPUTS, targets, epochs=epochs, rate=rate)
    mlp = MLP([2, settings.hidden, 2], seed=seed)
    torch_mlp = TorchMLP(mlp)
    x, y = torch.from_numpy(INPUTS), torch.from_numpy(targets)
    for _ in range(epochs):
        mlp.step(INPUTS, targets, rate=rate)
        torch_mlp.step(x, y, rate=rate)

    def torch_score(points: Floats) -> Floats:
        with torch.no_grad():
            probabilities: Floats = torch_mlp(torch.from_numpy(points)).softmax(1).numpy()
        return 2 * probabilities[:, 1] - 1

    return {
        "perceptron steps": by_steps.activation,
        "perceptron descent": by_descent.activation,
        "MLP numpy": lambda points: 2 * mlp.probabilities(points)[:, 1] - 1,
        "MLP torch": torch_score,
    }


def _success_rate(width: int, settings: GatesLesson) -> float:
    """The share of random initial weights from which an MLP of this width learns XOR."""
    targets = np.array(GATES["XOR"])
    successes = 0
    for seed in range(settings.starts):
        mlp = MLP([2, width, 2], seed=seed)
        for _ in range(settings.epochs):
            mlp.step(INPUTS, targets, rate=settings.learning_rate)
        successes += bool((mlp.predict(INPUTS) == targets).all())
    return successes / settings.starts


def _section(title: str, text: str, model: str, trained: Mapping[str, Models]) -> Section:
    """The section of one model, with a figure of its decision regions for each gate."""
    scores = {gate: by_model[model] for gate, by_model in trained.items()}
    charts = {
        f"{gate}: {_correct_count(gate, score)} of 4 right": regions(score, INPUTS, GATES[gate])
        for gate, score in scores.items()
    }
    return Section(model.replace(" ", "-"), title, [text, Charts(charts)])


def _answer(accuracy: Mapping[str, Mapping[str, float]], hidden: int) -> str:  # gates of accuracy 1
    def learnable(kind: str) -> str:
        best = {g: max(row[m] for m in row if m.startswith(kind)) for g, row in accuracy.items()}
        return listed([gate for gate, value in best.items() if value == 1]) or "nothing"

    return (
        f"A perceptron learns {learnable('perceptron')};"
        f" an MLP with {hidden} hidden units learns {learnable('MLP')}."
    )
