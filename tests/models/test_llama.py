"""Tests of LLaMA alone; those of all architectures are in test_contract.py."""

import pytest
import torch
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from tests.models.architectures import LLAMA, SCALED
from wxb.models import llama
from wxb.models.llama import Config, frequencies


@pytest.mark.parametrize("original", [12, 512, 8192])
def test_scaled_frequencies_equal_transformers(original):
    rope = {**SCALED, "original_max_position_embeddings": original}
    shape = LLAMA.config(head_dim=128, rope_parameters=rope)
    expected, scale = ROPE_INIT_FUNCTIONS["llama3"](shape, "cpu")
    assert scale == 1
    assert frequencies(Config.from_hf(shape)).equal(expected)


def test_far_positions_are_exact_in_half_precision():
    far = torch.tensor([[100_000]])
    model = llama.LlamaModel(Config.from_hf(LLAMA.config()))
    exact = llama.cosines_sines(model.frequencies, far, torch.float32)
    half = llama.cosines_sines(model.to(torch.bfloat16).frequencies, far, torch.bfloat16)
    for actual, expected in zip(half, exact, strict=True):
        assert actual.equal(expected.bfloat16())
