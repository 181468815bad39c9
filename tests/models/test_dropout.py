"""Dropout: share of zeros, scale of the others, and gradients."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from wxb.models.attention import Dropout

seeds = st.integers(0, 10_000)


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


@given(seeds, st.lists(st.integers(1, 5), min_size=1, max_size=4))
@settings(deadline=None, max_examples=20)
def test_a_seed_determines_outputs_and_gradients(seed, shape):
    inputs = torch.randn(shape, requires_grad=True)
    dropout = Dropout(0.5).train()
    torch.manual_seed(seed)
    first = dropout(inputs)
    torch.manual_seed(seed)
    assert dropout(inputs).equal(first)
    first.sum().backward()
    assert inputs.grad.equal(torch.where(first == 0, 0.0, 2.0)) or bool((inputs == 0).any())
