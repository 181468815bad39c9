"""Masks, and attention that returns zeros if every key is masked."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F  # noqa: N812

from wxb.models import masks


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_a_query_with_every_key_masked_gets_zeros_and_no_gradient(dtype, dropout):
    torch.manual_seed(0)
    query, key, value = (
        torch.randn(2, 2, 40, 8, dtype=dtype, requires_grad=True) for _ in range(3)
    )
    mask = masks.causal(40, 40).expand(2, 1, 40, 40).clone()
    mask[0, :, 5] = False
    mask[1] = False
    output = F.scaled_dot_product_attention(query, key, value, mask, dropout)
    assert not output[0, :, 5].any()
    assert not output[1].any()
    assert output[0, :, 6].any()
    output.square().sum().backward()
    for part in (query, key, value):
        assert part.grad.isfinite().all()
        assert not part.grad[1].any()
        assert part.grad[0].any()
    assert not query.grad[0, :, 5].any()


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
