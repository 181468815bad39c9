"""Native GPT-2 beside transformers'."""

from itertools import pairwise

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_model

from tests.models.equal import (
    TOLERANCE,
    assert_equal,
    assert_same_learning,
    dtypes,
    padded,
    shaken,
)
from wxb.lessons.parity import difference, twin
from wxb.models import gpt2
from wxb.models.decoding import positions
from wxb.models.gpt2 import Config

VOCABULARY, LONGEST = 30, 24


def config(**settings):
    shape = {
        "vocab_size": VOCABULARY,
        "n_embd": 16,
        "n_layer": 2,
        "n_head": 2,
        "n_positions": LONGEST,
        "initializer_range": 0.3,
        "bos_token_id": None,
        "eos_token_id": None,
    }
    return transformers.GPT2Config(**{**shape, **settings})


def made(name="GPT2LMHeadModel", **settings):
    torch.manual_seed(0)
    return getattr(transformers, name)(config(**settings)).eval()


def ids(rows=3, length=8, seed=0):
    rng = torch.Generator().manual_seed(seed)
    return torch.randint(VOCABULARY, (rows, length), generator=rng)


@st.composite
def models(draw):
    heads = draw(st.integers(1, 4))
    shape = config(
        n_head=heads,
        n_embd=heads * draw(st.integers(8, 12)),
        n_layer=draw(st.integers(1, 3)),
        n_inner=draw(st.sampled_from([None, 10])),
        activation_function=draw(st.sampled_from(["gelu", "gelu_new"])),
    )
    torch.manual_seed(draw(st.integers(0, 1000)))
    return shaken(transformers.GPT2LMHeadModel(shape)).to(draw(dtypes)).eval()


@st.composite
def batches(draw, *, left=None):
    rows, length = draw(st.integers(1, 4)), draw(st.integers(1, LONGEST // 2))
    inputs = {"input_ids": ids(rows, length, draw(st.integers(0, 1000)))}
    if draw(st.booleans()):
        side = draw(st.booleans()) if left is None else left
        inputs["attention_mask"] = padded(draw, rows, length, left=side)
    return inputs


@given(models(), batches())
@settings(deadline=None, max_examples=30)
def test_outputs_loss_and_gradients_equal_transformers(theirs, inputs):
    labels = inputs["input_ids"].clone()
    labels[:, 2::3] = -100
    if labels.shape[1] == 1:
        return  # no token has one before it: the mean of no losses
    # Of float64, transformers takes the loss in float32.
    assert_same_learning(theirs, inputs, {"labels": labels}, TOLERANCE[torch.float32])


@given(models(), batches())
@settings(deadline=None, max_examples=15)
def test_logits_equal_transformers_to_the_digits_of_the_type(theirs, inputs):
    ours, *_ = twin(theirs)
    with torch.no_grad():
        assert_equal(ours(**inputs), theirs(**inputs), TOLERANCE[theirs.dtype])


@given(models(), batches(left=True), st.integers(1, LONGEST // 2), st.booleans())
@settings(deadline=None, max_examples=20)
def test_generation_writes_what_transformers_writes(theirs, inputs, longest, ends):
    ours, *_ = twin(theirs)
    # Without a mask, transformers guesses one from the ids that equal the padding's.
    inputs.setdefault("attention_mask", torch.ones_like(inputs["input_ids"]))
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
    cuts = data.draw(st.sets(st.integers(1, length - 1), max_size=3)) if length > 1 else set()
    edges = [0, *sorted(cuts), length]
    past, parts = None, []
    with torch.no_grad():
        whole = ours(tokens, attention_mask=mask, position_ids=places)
        for first, last in pairwise(edges):
            output = ours(
                tokens[:, first:last],
                attention_mask=mask[:, :last],
                position_ids=places[:, first:last],
                past_key_values=past,
            )
            past = output.past_key_values
            parts.append(output.logits)
    real = mask.bool()
    assert difference(torch.cat(parts, dim=1)[real], whole.logits[real]) <= TOLERANCE[theirs.dtype]
    for layer, all_at_once in zip(past, whole.past_key_values, strict=True):
        for kept, expected in zip(layer, all_at_once, strict=True):
            assert kept.shape == expected.shape


def test_positions_go_on_after_those_read_before():
    ours, *_ = twin(made())
    tokens = ids()
    with torch.no_grad():
        past = ours(tokens[:, :5]).past_key_values
        rest = ours(tokens[:, 5:], past_key_values=past).logits
        assert difference(rest, ours(tokens).logits[:, 5:]) <= TOLERANCE[torch.float32]


def test_no_token_sees_one_after_it():
    ours, *_ = twin(made())
    tokens, other = ids(), ids()
    other[:, 5:] = 3
    with torch.no_grad():
        first, second = (ours(tokens).logits for tokens in (tokens, other))
    assert first[:, :5].equal(second[:, :5])
    assert not first[:, 5:].allclose(second[:, 5:])


def test_the_body_alone_equals_transformers():
    theirs = made("GPT2Model")
    ours, missing, unexpected = twin(theirs)
    assert (missing, unexpected) == ([], [])
    embedded = torch.randn(2, 5, 16)
    assert_equal(ours(ids()), theirs(ids()), TOLERANCE[torch.float32])
    inputs = {"inputs_embeds": embedded, "position_ids": torch.tensor([[4, 3, 2, 1, 0]])}
    assert_equal(ours(**inputs), theirs(**inputs), TOLERANCE[torch.float32])


def test_only_the_logits_asked_for_are_made():
    ours, *_ = twin(made())
    with torch.no_grad():
        every = ours(ids()).logits
        last = ours(ids(), logits_to_keep=2).logits
    torch.testing.assert_close(last, every[:, -2:])


def test_nothing_is_kept_unless_asked():
    ours, *_ = twin(made())
    assert ours(ids(), use_cache=False).past_key_values is None
    assert len(ours(ids()).past_key_values) == 2


def test_padding_on_the_left_changes_nothing_that_is_written():
    ours, *_ = twin(made())
    short = ids(1, 4)
    alone = ours.generate(short, max_new_tokens=8)
    beside = torch.cat([torch.full((1, 5), 9), short], dim=1)
    mask = torch.tensor([[0] * 5 + [1] * 4])
    assert ours.generate(beside, mask, max_new_tokens=8)[:, 5:].equal(alone)


@pytest.mark.parametrize("name", ["GPT2LMHeadModel", "GPT2Model"])
def test_saved_weights_load_in_transformers(name, tmp_path):
    torch.manual_seed(1)
    ours = getattr(gpt2, name)(Config.from_hf(config())).eval()
    save_model(ours, str(tmp_path / "model.safetensors"), metadata={"format": "pt"})
    config(architectures=[name]).save_pretrained(tmp_path)
    cls = getattr(transformers, name)
    theirs, loading = cls.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(loading.values())
    with torch.no_grad():
        assert_equal(ours(ids()), theirs(ids()), TOLERANCE[torch.float32])


def test_weights_are_laid_out_as_in_the_checkpoint():
    state = gpt2.GPT2Model(Config.from_hf(config())).state_dict()
    assert state["h.0.attn.c_attn.weight"].shape == (16, 48)
    assert state["h.0.mlp.c_fc.weight"].shape == (16, 64)


def test_initial_weights_are_spread_as_in_transformers():
    torch.manual_seed(0)
    shape = config(n_embd=64, initializer_range=0.05)
    ours = gpt2.GPT2LMHeadModel(Config.from_hf(shape)).state_dict()
    theirs = transformers.GPT2LMHeadModel(shape).state_dict()
    assert ours.keys() == theirs.keys()
    for name, weight in theirs.items():
        torch.testing.assert_close(ours[name].std(), weight.std(), rtol=0.1, atol=1e-4)
        torch.testing.assert_close(ours[name].mean(), weight.mean(), rtol=0, atol=0.01)


@pytest.mark.parametrize("place", ["resid_pdrop", "embd_pdrop", "attn_pdrop"])
def test_every_dropout_is_for_training_only(place):
    none = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    ours = gpt2.GPT2Model(Config.from_hf(config(**{**none, place: 0.5})))
    with torch.no_grad():
        for training in (True, False):
            ours.train(training)
            states = [ours(ids()).last_hidden_state for _ in range(2)]
            assert (difference(*states) > 0) == training


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"activation_function": "relu"}, "activation_function: found 'relu'"),
        ({"scale_attn_by_inverse_layer_idx": True}, "inverse_layer_idx: found True"),
        ({"scale_attn_weights": False}, "scale_attn_weights: found False"),
        ({"reorder_and_upcast_attn": True}, "reorder_and_upcast_attn: found True"),
        ({"add_cross_attention": True}, "add_cross_attention: found True"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings: found False"),
        ({"n_head": 3}, "n_embd 16 is not a multiple of n_head 3"),
    ],
)
def test_other_architectures_are_refused(settings, told):
    with pytest.raises(ValueError, match=told):
        Config.from_hf(config(**settings))


def test_more_tokens_than_positions_are_refused():
    ours, *_ = twin(made())
    with pytest.raises(ValueError, match="found position 24; the model has 24"):
        ours(torch.zeros(1, LONGEST + 1, dtype=torch.long))


@pytest.mark.parametrize(
    "inputs", [{}, {"input_ids": ids(), "inputs_embeds": torch.ones(3, 8, 16)}]
)
def test_ids_and_embeddings_exclude_each_other(inputs):
    ours, *_ = twin(made())
    with pytest.raises(ValueError, match="either input_ids or inputs_embeds"):
        ours(**inputs)
