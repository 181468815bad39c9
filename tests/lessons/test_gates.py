"""The lesson on gates: no perceptron learns XOR; both MLPs do."""

import pytest

from tests import demo
from wxb.core.params import check
from wxb.lessons import gates


def with_seed(seed):
    """The committed parameters with another seed and fewer random starts."""
    content = demo.content()
    content["seed"] = seed
    content["lessons"]["gates"]["starts"] = 8
    return check(content)


@pytest.fixture(scope="module")
def lesson():
    return gates.run(with_seed(1), "gates")


def accuracies(lesson):
    """Accuracy by gate and model, from the table of the page."""
    table = lesson.sections[0].blocks[1]
    return {
        gate: dict(zip(table.header[1:], (cell.value for cell in row), strict=True))
        for gate, *row in table.rows
    }


def test_the_perceptron_learns_or_and_and_but_neither_xor_nor_xnor(lesson):
    accuracy = accuracies(lesson)
    for rule in ("perceptron steps", "perceptron descent"):
        assert accuracy["OR"][rule] == accuracy["AND"][rule] == 1
        assert max(accuracy["XOR"][rule], accuracy["XNOR"][rule]) <= 0.75
    assert "perceptron learns OR and AND;" in lesson.answer


def test_both_mlps_learn_every_gate(lesson):
    for made in (lesson, gates.run(with_seed(2), "gates")):
        accuracy = accuracies(made)
        assert [*accuracy] == [*gates.GATES]
        for by_model in accuracy.values():
            assert by_model["MLP numpy"] == by_model["MLP torch"] == 1


def test_metrics_are_those_of_xor(lesson):
    accuracy = [
        lesson.metrics[f"xor_{model}"]
        for model in ("perceptron_steps", "perceptron_descent", "mlp_numpy", "mlp_torch")
    ]
    assert accuracy == [*accuracies(lesson)["XOR"].values()]
    shares = [lesson.metrics[f"xor_learnt_by_{width}"] for width in (2, 4, 8, 16)]
    assert shares == sorted(shares)
    assert shares[0] < 0.5
    assert shares[-1] == 1
    assert len(lesson.metrics) == 8
    assert gates.run(with_seed(1), "gates").metrics == lesson.metrics
