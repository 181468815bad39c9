"""Attention compared with torch's; full masks; positions; dropout."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from wxb.models.attention import Dropout, MultiHeadAttention, attention_weights, sinusoids

sizes = st.integers(1, 5)
seeds = st.integers(0, 99)


def random_tensors(*shapes, dtype=torch.float64):
    return [torch.randn(*shape, dtype=dtype, requires_grad=True) for shape in shapes]


def gradients(result, inputs):
    weights = torch.arange(result.numel()).view_as(result) / result.numel()
    return torch.autograd.grad((result * weights).sum(), inputs)


@given(st.integers(1, 3), st.integers(1, 3), sizes, sizes, st.booleans(), seeds)
@settings(deadline=None, max_examples=40)
def test_multi_head_attention_equals_torch(heads, size, queries, keys, masked, seed):
    torch.manual_seed(seed)
    width = heads * size
    theirs = nn.MultiheadAttention(width, heads, batch_first=True).double()
    nn.init.normal_(theirs.in_proj_bias)
    ours = MultiHeadAttention(width, heads).double()
    ours.load_state_dict(theirs.state_dict(), strict=True)
    inputs, memory = random_tensors((2, queries, width), (2, keys, width))
    mask = None
    if masked:
        mask = torch.rand(2, 1, 1, keys) < 0.6
        mask[..., 0] |= ~mask.any(dim=-1)  # at least one key in every row
    actual = ours(inputs, *ours.keys_values(memory), mask)
    hidden = None if mask is None else ~mask[:, 0, 0]  # torch marks padding
    expected, _ = theirs(inputs, memory, memory, key_padding_mask=hidden, need_weights=False)
    torch.testing.assert_close(actual, expected)
    torch.testing.assert_close(
        gradients(actual, [inputs, memory, *ours.parameters()]),
        gradients(expected, [inputs, memory, *theirs.parameters()]),
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_query_with_every_key_masked_gets_zeros_and_no_gradient(dtype):
    torch.manual_seed(0)
    inputs = random_tensors((1, 1, 2, 4), (1, 1, 3, 4), (1, 1, 3, 4), dtype=dtype)
    mask = torch.tensor([[True, False, True], [False, False, False]])
    weights = attention_weights(inputs[0], inputs[1], mask)
    assert weights[0, 0, 1].tolist() == [0, 0, 0]
    actual = attention_weights(*inputs[:2], mask) @ inputs[2]
    assert actual[0, 0, 1].tolist() == [0, 0, 0, 0]
    slopes = gradients(actual, inputs)
    assert all(slope.isfinite().all() for slope in slopes)
    assert not slopes[0][0, 0, 1].any()
    assert slopes[0][0, 0, 0].any()


@given(st.integers(1, 50), st.integers(1, 8).map(lambda half: 2 * half))
@settings(deadline=None)
def test_positions_equal_the_formula_of_the_paper(length, width):
    table = sinusoids(length, width)
    for position, pair in ((0, 0), (length - 1, 0), (length - 1, width // 2 - 1)):
        angle = position / 10_000 ** (2 * pair / width)
        assert table[position, 2 * pair] == pytest.approx(np.sin(angle))
        assert table[position, 2 * pair + 1] == pytest.approx(np.cos(angle))


@given(st.floats(0.01, 0.99), seeds)
@settings(deadline=None, max_examples=20)
def test_values_are_dropped_or_scaled_so_that_the_mean_is_kept(p, seed):
    torch.manual_seed(seed)
    output = Dropout(p).train()(torch.ones(200, 101, dtype=torch.float64))
    share = round(p * 256) / 256
    nonzero = output[output != 0]
    if 0 < share < 1:
        assert torch.allclose(nonzero, torch.tensor(1 / (1 - share), dtype=torch.float64))
    # Six standard deviations of the share of 20,200 values.
    assert float((output == 0).double().mean()) == pytest.approx(share, abs=6 * 0.5 / 20_200**0.5)
