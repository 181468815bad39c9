"""The convolutional network: shapes, a block computed by hand, and training."""

import numpy as np
import pytest
import torch

from wxb.models.cnn import CNN


def test_shapes_equal_the_table_of_the_docstring():
    model = CNN((3, 32, 32), 10, widths=(32, 64, 64))
    shapes = []
    for convolution in model.convolutions:
        convolution.register_forward_hook(lambda *call: shapes.append(call[2].shape[1:]))
    model.classifier.register_forward_hook(lambda *call: shapes.append(call[1][0].shape[1:]))
    model(torch.zeros(2, 3, 32, 32))
    assert [tuple(shape) for shape in shapes] == [(32, 32, 32), (64, 16, 16), (64, 8, 8), (1024,)]
    by_hand = [(3 * 9 + 1) * 32, (32 * 9 + 1) * 64, (64 * 9 + 1) * 64, (1024 + 1) * 10]
    assert sum(p.numel() for p in model.parameters()) == sum(by_hand)


def test_pictures_too_small_to_be_halved_are_an_error():
    with pytest.raises(ValueError, match="found 5 x 9"):
        CNN((1, 5, 9), 3, widths=(3, 3, 3))


def test_a_block_equals_a_computation_by_hand():
    torch.manual_seed(0)
    model = CNN((2, 4, 4), 3, widths=(5,)).double()
    image = torch.randn(2, 4, 4, dtype=torch.float64)
    padded = np.pad(image.numpy(), ((0, 0), (1, 1), (1, 1)))
    weight, bias = (p.detach().numpy() for p in model.convolutions[0].parameters())
    pooled = np.zeros((5, 2, 2))
    for k, i, j in np.ndindex(5, 4, 4):
        value = bias[k] + (padded[:, i : i + 3, j : j + 3] * weight[k]).sum()
        pooled[k, i // 2, j // 2] = max(pooled[k, i // 2, j // 2], value)  # from 0: the ReLU
    w, b = (p.detach().numpy() for p in model.classifier.parameters())
    assert np.allclose(model(image[None])["logits"].detach().numpy()[0], w @ pooled.ravel() + b)


def test_dropout_is_off_in_prediction():
    torch.manual_seed(0)
    model = CNN((1, 8, 8), 4, widths=(8,), dropout=0.5)
    pixels = torch.randn(1, 1, 8, 8)
    assert not torch.equal(model(pixels)["logits"], model(pixels)["logits"])
    model.predict(pixels)
    assert torch.equal(model(pixels)["logits"], model(pixels)["logits"])
