"""Native LLaMA beside transformers'."""

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_model
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from tests.models.equal import assert_equal, assert_same_learning, dtypes, padded, shaken
from wxb.lessons.parity import difference, twin
from wxb.models import llama
from wxb.models.decoding import positions
from wxb.models.llama import Config, frequencies

VOCABULARY, LONGEST = 30, 24
TOLERANCE = 1e-5  # in float64 as well: the norms and angles are in float32 there too
PLAIN = {"rope_type": "default", "rope_theta": 10_000.0}
STRETCHED = {
    "rope_type": "llama3",
    "rope_theta": 500_000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 12,
}


def config(**settings):
    shape = {
        "vocab_size": VOCABULARY,
        "hidden_size": 32,
        "intermediate_size": 40,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "initializer_range": 0.2,
        "rope_parameters": PLAIN,
        "bos_token_id": None,
        "eos_token_id": None,
    }
    return transformers.LlamaConfig(**{**shape, **settings})


def made(name="LlamaForCausalLM", **settings):
    torch.manual_seed(0)
    return getattr(transformers, name)(config(**settings)).eval()


def ids(rows=3, length=8, seed=0):
    rng = torch.Generator().manual_seed(seed)
    return torch.randint(VOCABULARY, (rows, length), generator=rng)


@st.composite
def models(draw):
    groups, size = draw(st.integers(1, 3)), 2 * draw(st.integers(2, 6))
    heads = groups * draw(st.integers(1, 3))
    rope = draw(st.sampled_from([PLAIN, {**PLAIN, "rope_theta": 500_000.0}, STRETCHED]))
    shape = config(
        num_attention_heads=heads,
        num_key_value_heads=groups,
        hidden_size=heads * size,
        head_dim=draw(st.sampled_from([size, size + 2])),
        num_hidden_layers=draw(st.integers(1, 3)),
        rope_parameters=dict(rope),
        tie_word_embeddings=draw(st.booleans()),
        pad_token_id=draw(st.sampled_from([None, 3])),
    )
    torch.manual_seed(draw(st.integers(0, 1000)))
    return shaken(transformers.LlamaForCausalLM(shape)).to(draw(dtypes)).eval()


@st.composite
def batches(draw, *, left=None, shortest=1):
    rows, length = draw(st.integers(1, 4)), draw(st.integers(shortest, LONGEST // 2))
    inputs = {"input_ids": ids(rows, length, draw(st.integers(0, 1000)))}
    if draw(st.booleans()):
        side = draw(st.booleans()) if left is None else left
        inputs["attention_mask"] = padded(draw, rows, length, left=side)
    return inputs


@given(models(), batches(shortest=2))
@settings(deadline=None, max_examples=30)
def test_outputs_loss_and_gradients_equal_transformers(theirs, inputs):
    labels = inputs["input_ids"].clone()
    labels[:, 2::3] = -100
    assert_same_learning(theirs, inputs, {"labels": labels}, TOLERANCE)


@given(models(), batches(left=True), st.integers(1, LONGEST // 2), st.booleans())
@settings(deadline=None, max_examples=20)
def test_generation_writes_what_transformers_writes(theirs, inputs, longest, ends):
    ours, *_ = twin(theirs)
    # Without a mask, transformers takes every padding token for padding.
    inputs = {"attention_mask": torch.ones_like(inputs["input_ids"]), **inputs}
    free = ours.generate(**inputs, max_new_tokens=longest)
    end = int(free[0, -(longest + 1) // 2]) if ends else None
    stop = {"max_new_tokens": longest, "eos_token_id": end, "pad_token_id": 0 if ends else None}
    for use_cache in (True, False):
        same = transformers.GenerationConfig(do_sample=False, use_cache=use_cache, **stop)
        expected = theirs.generate(**inputs, generation_config=same)
        assert ours.generate(**inputs, **stop, use_cache=use_cache).equal(expected)


@given(models(), batches(left=True), st.data())
@settings(deadline=None, max_examples=20)
def test_reading_in_parts_is_reading_at_once(theirs, inputs, data):
    ours, *_ = twin(theirs)
    tokens = inputs["input_ids"]
    mask = inputs.get("attention_mask", torch.ones_like(tokens))
    places, length = positions(mask), tokens.shape[1]
    cut = data.draw(st.integers(1, length))
    past, parts = None, []
    with torch.no_grad():
        whole = ours(tokens, attention_mask=mask, position_ids=places).logits
        for part in (slice(cut), slice(cut, length)):
            if tokens[:, part].shape[1]:
                output = ours(
                    tokens[:, part],
                    attention_mask=mask[:, : part.stop],
                    position_ids=places[:, part],
                    past_key_values=past,
                )
                past = output.past_key_values
                parts.append(output.logits)
    real = mask.bool()
    assert difference(torch.cat(parts, dim=1)[real], whole[real]) <= TOLERANCE
    assert past[0][0].shape[2] == length


def test_positions_go_on_after_those_read_before():
    ours, *_ = twin(made())
    with torch.no_grad():
        past = ours(ids()[:, :5]).past_key_values
        rest = ours(ids()[:, 5:], past_key_values=past).logits
        assert difference(rest, ours(ids()).logits[:, 5:]) <= TOLERANCE


def test_no_token_sees_one_after_it():
    ours, *_ = twin(made())
    other = ids()
    other[:, 5:] = 3
    with torch.no_grad():
        first, second = (ours(tokens).logits for tokens in (ids(), other))
    assert first[:, :5].equal(second[:, :5])
    assert not first[:, 5:].allclose(second[:, 5:])


def test_a_row_of_nothing_but_padding_is_no_trouble():
    ours, *_ = twin(made())
    mask = torch.ones(3, 8, dtype=torch.long)
    mask[1] = 0
    output = ours(ids(), attention_mask=mask, labels=ids())
    output.loss.backward()
    assert output.logits.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in ours.parameters())


def test_the_body_alone_equals_transformers():
    theirs = made("LlamaModel")
    ours, missing, unexpected = twin(theirs)
    assert (missing, unexpected) == ([], [])
    assert_equal(ours(ids()), theirs(ids()), TOLERANCE)
    inputs = {
        "inputs_embeds": torch.randn(2, 5, 32),
        "position_ids": torch.tensor([[4, 3, 9, 1, 0]]),
    }
    assert_equal(ours(**inputs), theirs(**inputs), TOLERANCE)


def test_only_the_logits_asked_for_are_made():
    ours, *_ = twin(made())
    with torch.no_grad():
        last, every = (ours(ids(), logits_to_keep=kept).logits for kept in (2, 0))
    torch.testing.assert_close(last, every[:, -2:])
    assert ours(ids(), use_cache=False).past_key_values is None


@pytest.mark.parametrize("tied", [True, False])
def test_saved_weights_load_in_transformers(tied, tmp_path):
    torch.manual_seed(1)
    shape = config(tie_word_embeddings=tied, architectures=["LlamaForCausalLM"])
    ours = llama.LlamaForCausalLM(Config.from_hf(shape)).eval()
    save_model(ours, str(tmp_path / "model.safetensors"), metadata={"format": "pt"})
    shape.save_pretrained(tmp_path)
    theirs, loading = transformers.LlamaForCausalLM.from_pretrained(
        tmp_path, output_loading_info=True
    )
    assert not any(loading.values())
    with torch.no_grad():
        assert_equal(ours(ids()), theirs(ids()), TOLERANCE)


def test_initial_weights_are_spread_as_in_transformers():
    torch.manual_seed(0)
    shape = config(hidden_size=64, initializer_range=0.05)
    ours = llama.LlamaForCausalLM(Config.from_hf(shape)).state_dict()
    theirs = transformers.LlamaForCausalLM(shape).state_dict()
    assert ours.keys() == theirs.keys()
    for name, weight in theirs.items():
        torch.testing.assert_close(ours[name].std(), weight.std(), rtol=0.1, atol=1e-4)
        torch.testing.assert_close(ours[name].mean(), weight.mean(), rtol=0, atol=0.01)


@pytest.mark.parametrize("original", [12, 512, 8192])
def test_stretched_frequencies_are_those_of_transformers(original):
    rope = {**STRETCHED, "original_max_position_embeddings": original}
    shape = config(head_dim=128, rope_parameters=rope)
    expected, scale = ROPE_INIT_FUNCTIONS["llama3"](shape, "cpu")
    assert scale == 1
    assert frequencies(Config.from_hf(shape)).equal(expected)


def test_far_positions_are_as_exact_in_half_precision():
    far = torch.tensor([[100_000]])
    turns = llama.LlamaModel(Config.from_hf(config()))
    exact = turns.rotary_emb(far, torch.float32)
    half = turns.to(torch.bfloat16).rotary_emb(far, torch.bfloat16)
    for found, expected in zip(half, exact, strict=True):
        assert found.equal(expected.bfloat16())


@given(st.integers(0, 5000), st.integers(0, 5000), st.integers(0, 1000))
@settings(deadline=None, max_examples=20)
def test_rotated_products_depend_on_distance_alone(place, distance, further):
    turn = llama.RotaryEmbedding(Config.from_hf(config(head_dim=16)))
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
        ({"hidden_act": "gelu"}, "hidden_act: found 'gelu'"),
        ({"attention_bias": True}, "attention_bias: found True"),
        ({"mlp_bias": True}, "mlp_bias: found True"),
        ({"num_key_value_heads": 3}, "4 is not a multiple of num_key_value_heads 3"),
        ({"rope_parameters": {**PLAIN, "rope_type": "dynamic", "factor": 2.0}}, "found 'dynamic'"),
        ({"rope_parameters": {**PLAIN, "partial_rotary_factor": 0.5}}, "found 0.5"),
    ],
)
def test_other_architectures_are_refused(settings, told):
    with pytest.raises(ValueError, match=told):
        Config.from_hf(config(**settings))


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


@pytest.mark.parametrize(
    "inputs", [{}, {"input_ids": ids(), "inputs_embeds": torch.ones(3, 8, 32)}]
)
def test_ids_and_embeddings_exclude_each_other(inputs):
    ours, *_ = twin(made())
    with pytest.raises(ValueError, match="either input_ids or inputs_embeds"):
        ours(**inputs)


@pytest.mark.parametrize("tied", [True, False])
def test_the_head_is_tied_where_the_settings_say_so(tied):
    ours = llama.LlamaForCausalLM(Config.from_hf(config(tie_word_embeddings=tied)))
    assert (ours.lm_head.weight is ours.model.embed_tokens.weight) == tied
