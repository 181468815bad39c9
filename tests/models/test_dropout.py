"""Dropout: share of zeros, and scale of the others."""

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
