"""Dropout: as many values as torch drops, the others scaled as torch does, and none in use."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from wxb.models.attention import Dropout

seeds = st.integers(0, 10_000)


@given(st.floats(0.01, 0.99), seeds)
@settings(deadline=None, max_examples=20)
def test_values_are_dropped_or_scaled_so_that_the_mean_stays(p, seed):
    torch.manual_seed(seed)
    dropped = Dropout(p).train()(torch.ones(200, 101, dtype=torch.float64))
    share = round(p * 256) / 256
    kept = dropped[dropped != 0]
    if 0 < share < 1:
        assert torch.allclose(kept, torch.tensor(1 / (1 - share), dtype=torch.float64))
    assert float((dropped == 0).double().mean()) == pytest.approx(share, abs=0.02)


@given(seeds, st.lists(st.integers(1, 5), min_size=1, max_size=4))
@settings(deadline=None, max_examples=20)
def test_the_same_seed_drops_the_same_and_the_gradient_is_dropped_too(seed, shape):
    inputs = torch.randn(shape, requires_grad=True)
    drop = Dropout(0.5).train()
    torch.manual_seed(seed)
    first = drop(inputs)
    torch.manual_seed(seed)
    assert drop(inputs).equal(first)
    first.sum().backward()
    assert inputs.grad.equal(torch.where(first == 0, 0.0, 2.0)) or bool((inputs == 0).any())


def test_nothing_is_dropped_in_use_or_at_zero():
    inputs = torch.randn(3, 4)
    assert Dropout(0.5).eval()(inputs).equal(inputs)
    assert Dropout(0.0).train()(inputs).equal(inputs)
    assert Dropout(0.3).train()(inputs.bfloat16()).dtype == torch.bfloat16
