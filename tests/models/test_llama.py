"""What of LLaMA is no other architecture's; the rest is in test_contract.py."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from tests.models.architectures import LLAMA, PLAIN, STRETCHED
from wxb.models import llama
from wxb.models.llama import Config, frequencies


@pytest.mark.parametrize("original", [12, 512, 8192])
def test_stretched_frequencies_are_those_of_transformers(original):
    rope = {**STRETCHED, "original_max_position_embeddings": original}
    shape = LLAMA.config(head_dim=128, rope_parameters=rope)
    expected, scale = ROPE_INIT_FUNCTIONS["llama3"](shape, "cpu")
    assert scale == 1
    assert frequencies(Config.from_hf(shape)).equal(expected)


def test_far_positions_are_as_exact_in_half_precision():
    far = torch.tensor([[100_000]])
    turns = llama.LlamaModel(Config.from_hf(LLAMA.config()))
    exact = turns.rotary_emb(far, torch.float32)
    half = turns.to(torch.bfloat16).rotary_emb(far, torch.bfloat16)
    for found, expected in zip(half, exact, strict=True):
        assert found.equal(expected.bfloat16())


@given(st.integers(0, 5000), st.integers(0, 5000), st.integers(0, 1000))
@settings(deadline=None, max_examples=20)
def test_rotated_products_depend_on_distance_alone(place, distance, further):
    turn = llama.RotaryEmbedding(Config.from_hf(LLAMA.config(head_dim=16)))
    query, key = torch.randn(2, 1, 1, 1, 16, generator=torch.Generator().manual_seed(place))

    def product(start):
        return sum(
            (
                llama.rotate(query, *turn(torch.tensor([[start + distance]]), torch.float32))
                * llama.rotate(key, *turn(torch.tensor([[start]]), torch.float32))
            ).flatten()
        )

    torch.testing.assert_close(product(place), product(place + further), atol=2e-2, rtol=0)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"head_dim": 7}, "head_dim 7 is odd"),
        ({"rope_parameters": {"rope_theta": 10_000.0}}, "rope_type: found None"),
        ({"rope_parameters": {**PLAIN, "rope_type": "llama3", "factor": 8}}, "lack low_freq_fac"),
    ],
)
def test_settings_that_make_no_model_are_refused(settings, told):
    with pytest.raises(ValueError, match=told):
        Config(**settings)


@pytest.mark.parametrize("tied", [True, False])
def test_the_head_is_tied_where_the_settings_say_so(tied):
    ours = LLAMA.ours(tie_word_embeddings=tied)
    assert (ours.lm_head.weight is ours.model.embed_tokens.weight) == tied
