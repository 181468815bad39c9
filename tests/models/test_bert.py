"""Tests of BERT alone; those of all architectures are in test_contract.py."""

import pytest
import torch
import transformers

from tests.models.architectures import BERT
from tests.models.equal import SINGLE, assert_equal, assert_same_training
from wxb.models import bert
from wxb.models.bert import Config


@pytest.mark.parametrize("pools", [True, False])
def test_the_backbone_with_and_without_pooler_equals_transformers(pools):
    torch.manual_seed(0)
    theirs = transformers.BertModel(BERT.config(), add_pooling_layer=pools).eval()
    ours = bert.BertModel(Config.from_hf(BERT.config()), add_pooling_layer=pools).eval()
    ours.load_state_dict(theirs.state_dict(), strict=True)
    theirs.load_state_dict(ours.state_dict(), strict=True)
    assert_equal(ours(**BERT.inputs()), theirs(**BERT.inputs()), SINGLE)
    assert (ours(**BERT.inputs()).pooler_output is None) != pools


def test_a_text_of_padding_alone_equals_transformers():
    inputs = {**BERT.inputs(rows=2), "attention_mask": torch.tensor([[1] * 8, [0] * 8])}
    assert_same_training(BERT.theirs(), inputs, BERT.labels(inputs["input_ids"]), SINGLE)


def test_the_initial_embedding_of_padding_is_zero():
    weights = BERT.initial(pad_token_id=3).state_dict()
    assert not weights["bert.embeddings.word_embeddings.weight"][3].any()
