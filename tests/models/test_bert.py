"""Tests of BERT alone; those of all architectures are in test_contract.py."""

import torch

from tests.models.architectures import BERT
from tests.models.equal import SINGLE, assert_same_training


def test_a_text_of_padding_alone_equals_transformers():
    inputs = {**BERT.inputs(rows=2), "attention_mask": torch.tensor([[1] * 8, [0] * 8])}
    assert_same_training(BERT.theirs(), inputs, BERT.labels(inputs["input_ids"]), SINGLE)
