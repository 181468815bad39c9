"""The NumPy network, compared with torch ."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from wxb.models.mlp import MLP, TorchMLP, cross_entropy, he_normal, softmax


@given(
    sizes=st.lists(st.integers(1, 9), min_size=2, max_size=5),
    points=st.integers(1, 12),
    seed=st.integers(0, 10_000),
)
def test_outputs_loss_and_gradients_equal_torch(sizes, points, seed):
    rng = np.random.default_rng(seed)
    network = MLP(sizes, seed=seed)
    network.layers = [(w, rng.normal(size=b.shape)) for w, b in network.layers]  # biases are not 0
    x = rng.normal(size=(points, sizes[0]))
    y = rng.integers(0, sizes[-1], size=points)
    torch_network = TorchMLP(network)
    logits = torch_network(torch.from_numpy(x))
    loss = torch.nn.functional.cross_entropy(logits, torch.from_numpy(y))
    loss.backward()
    values = network.forward(x)
    assert np.allclose(values[-1], logits.detach())
    assert np.allclose(network.probabilities(x), logits.detach().softmax(1))
    assert np.allclose(cross_entropy(values[-1], y), loss.item())
    for (dw, db), layer in zip(network.backward(values, y), torch_network.layers, strict=True):
        assert np.allclose(dw, layer.weight.grad)
        assert np.allclose(db, layer.bias.grad)


def test_both_take_the_same_steps_and_learn_xor():
    x = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    y = np.array([0, 1, 1, 0])
    network = MLP([2, 8, 2], seed=1)
    torch_network = TorchMLP(network)
    tensors = torch.tensor(x), torch.tensor(y)
    pairs = [
        (network.step(x, y, rate=0.5), torch_network.step(*tensors, rate=0.5)) for _ in range(300)
    ]
    assert np.allclose(*zip(*pairs, strict=True))
    for (w, b), layer in zip(network.layers, torch_network.layers, strict=True):
        assert np.allclose(w, layer.weight.detach())
        assert np.allclose(b, layer.bias.detach())
    assert network.predict(x).tolist() == y.tolist()
    assert pairs[-1][0] < 0.05 < pairs[0][0]


def test_he_normal_keeps_the_variance_through_many_relu_layers():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 256))
    first = None
    for _ in range(20):
        x = np.maximum(x @ he_normal(rng, 256, 256).T, 0)
        first = first or np.mean(x**2)
    assert first / 2 < np.mean(x**2) < first * 2


def test_large_logits_do_not_overflow():
    logits = np.array([[1e4, 0.0], [-1e4, 0.0]])
    assert softmax(logits).tolist() == [[1, 0], [0, 1]]
    assert cross_entropy(logits, np.array([1, 0])) == 1e4
