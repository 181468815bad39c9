"""Masks of attention."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from wxb.models import masks


@given(st.integers(1, 6), st.integers(0, 6))
def test_causal_masks_later_tokens_of_the_last_queries(queries, cached):
    keys = cached + queries
    mask = masks.causal(queries, keys)
    assert mask.dtype == torch.bool
    expected = [[key <= cached + query for key in range(keys)] for query in range(queries)]
    assert mask.tolist() == expected


@given(st.integers(1, 5), st.integers(0, 4), st.booleans())
def test_a_decoder_masks_padding_and_later_tokens(queries, cached, padded):
    keys = cached + queries
    attention_mask = (torch.rand(3, keys, generator=torch.Generator().manual_seed(1)) < 0.6).long()
    if not padded:
        attention_mask = torch.ones_like(attention_mask)
    expected = masks.tokens(attention_mask) & masks.causal(queries, keys)
    device = torch.device("cpu")
    mask = masks.decoder(attention_mask, queries, keys, device)
    assert mask.expand(3, 1, queries, keys).equal(expected)
    if not padded:
        mask = masks.decoder(None, queries, keys, device)
        mask = torch.ones(1, 1, dtype=torch.bool) if mask is None else mask
        assert mask.expand(3, 1, queries, keys).equal(expected)
