"""Masks, and attention that returns zeros if every key is masked."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from wxb.models import masks

each_dtype = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])


def by_hand(query, key, value, mask):
    """softmax(Q K' / sqrt D) V for one head, one query at a time, over its unmasked keys."""
    rows = []
    for row, q in enumerate(query):
        unmasked = mask[row].nonzero().squeeze(1)
        if len(unmasked) == 0:
            rows.append(torch.zeros_like(value[0]))
            continue
        weights = torch.stack([(q @ key[k]) / math.sqrt(len(q)) for k in unmasked]).softmax(0)
        rows.append(sum(w * value[k] for w, k in zip(weights, unmasked, strict=True)))
    return torch.stack(rows)


@st.composite
def attentions(draw):
    torch.manual_seed(draw(st.integers(0, 10_000)))
    groups, shared = draw(st.sampled_from([(1, 1), (2, 1), (2, 2), (1, 3)]))
    queries, keys, size = (draw(st.integers(1, 6)) for _ in range(3))
    query = torch.randn(2, groups * shared, queries, size, dtype=torch.float64)
    key, value = (torch.randn(2, groups, keys, size, dtype=torch.float64) for _ in range(2))
    mask = torch.rand(2, 1, queries, keys) < draw(st.sampled_from([0.3, 0.7, 1.0]))
    return query, key, value, mask


@given(attentions())
@settings(deadline=None, max_examples=40)
def test_attention_equals_the_formula(tensors):
    query, key, value, mask = tensors
    output = masks.attend(query, key, value, mask)
    shared = query.shape[1] // key.shape[1]
    for row in range(2):
        for head in range(query.shape[1]):
            pair = key[row, head // shared], value[row, head // shared]
            expected = by_hand(query[row, head], *pair, mask[row, 0])
            torch.testing.assert_close(output[row, head], expected)


@each_dtype
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_a_query_with_every_key_masked_gets_zeros_and_no_gradient(dtype, dropout):
    torch.manual_seed(0)
    query, key, value = (
        torch.randn(2, 2, 40, 8, dtype=dtype, requires_grad=True) for _ in range(3)
    )
    mask = masks.causal(40, 40).expand(2, 1, 40, 40).clone()
    mask[0, :, 5] = False
    mask[1] = False
    output = masks.attend(query, key, value, mask, dropout=dropout)
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
    mask = masks.causal(queries, cached + queries)
    assert mask.dtype == torch.bool
    expected = [
        [key <= cached + query for key in range(cached + queries)] for query in range(queries)
    ]
    assert mask.tolist() == expected


def test_padding_is_masked():
    mask = masks.padding(torch.tensor([[0, 1, 1], [1, 1, 0]]))
    assert mask.shape == (2, 1, 1, 3)
    assert mask.squeeze().tolist() == [[False, True, True], [True, True, False]]


@given(st.integers(1, 5), st.integers(0, 4), st.booleans())
def test_a_decoder_masks_padding_and_later_tokens(queries, cached, padded):
    keys = cached + queries
    attention_mask = (torch.rand(3, keys, generator=torch.Generator().manual_seed(1)) < 0.6).long()
    if not padded:
        attention_mask = torch.ones_like(attention_mask)
    expected = masks.padding(attention_mask) & masks.causal(queries, keys)
    device = torch.device("cpu")
    mask = masks.decoder(attention_mask, queries, keys, device)
    assert mask.expand(3, 1, queries, keys).equal(expected)
    if not padded:
        mask = masks.decoder(None, queries, keys, device)
        mask = torch.ones(1, 1, dtype=torch.bool) if mask is None else mask
        assert mask.expand(3, 1, queries, keys).equal(expected)
