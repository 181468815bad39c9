"""Tests of GPT-2 alone; those of all architectures are in test_contract.py."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.architectures import GPT2, batches, models
from tests.models.equal import assert_equal, tolerance, twin


@given(models(GPT2), st.data())
@settings(deadline=None, max_examples=15)
def test_logits_equal_transformers(theirs, data):
    ours, *_ = twin(theirs)
    inputs = data.draw(batches(GPT2, theirs.dtype))
    with torch.no_grad():
        assert_equal(ours(**inputs), theirs(**inputs), tolerance(theirs.dtype))
