"""Tests of GPT-2 alone; those of all architectures are in test_contract.py."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.architectures import GPT2, batches, models, random_ids
from tests.models.equal import assert_equal, tolerance, twin
from wxb.models.decoding import complete


@given(models(GPT2), st.data())
@settings(deadline=None, max_examples=15)
def test_logits_equal_transformers(theirs, data):
    ours, *_ = twin(theirs)
    inputs = data.draw(batches(GPT2, theirs.dtype))
    with torch.no_grad():
        assert_equal(ours(**inputs), theirs(**inputs), tolerance(theirs.dtype))


def test_padding_on_the_left_does_not_change_generation():
    ours, short = GPT2.ours(), random_ids(1, 4)
    alone = complete(ours, short, max_new_tokens=8).tokens
    padded = torch.cat([torch.full((1, 5), 9), short], dim=1)
    mask = torch.tensor([[0] * 5 + [1] * 4])
    assert complete(ours, padded, mask, max_new_tokens=8).tokens.equal(alone)
