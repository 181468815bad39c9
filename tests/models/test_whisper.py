"""Native Whisper beside transformers'."""

from dataclasses import replace

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_model
from torch import nn
from transformers import GenerationMixin
from transformers.models.whisper import modeling_whisper

from tests.models.equal import (
    TOLERANCE,
    assert_equal,
    assert_same_learning,
    dtypes,
    padded,
    shaken,
)
from wxb.lessons.parity import difference, twin
from wxb.models import whisper
from wxb.models.decoding import positions
from wxb.models.whisper import Config, sinusoids

VOCABULARY, LONGEST, BANDS, FRAMES, START = 30, 24, 6, 20, 1
SINGLE = TOLERANCE[torch.float32]


def config(**settings):
    shape = {
        "vocab_size": VOCABULARY,
        "num_mel_bins": BANDS,
        "d_model": 16,
        "encoder_layers": 2,
        "encoder_attention_heads": 2,
        "encoder_ffn_dim": 20,
        "decoder_layers": 2,
        "decoder_attention_heads": 2,
        "decoder_ffn_dim": 20,
        "max_source_positions": FRAMES // 2,
        "max_target_positions": LONGEST,
        "init_std": 0.3,
        "pad_token_id": 0,
        "bos_token_id": START,
        "eos_token_id": 2,
        "decoder_start_token_id": START,
        "begin_suppress_tokens": None,
    }
    return transformers.WhisperConfig(**{**shape, **settings})


def made(name="WhisperForConditionalGeneration", **settings):
    torch.manual_seed(0)
    return shaken(getattr(transformers, name)(config(**settings))).eval()


def sound(rows=3, seed=0, frames=FRAMES):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(rows, BANDS, frames, generator=rng)


def ids(rows=3, length=8, seed=0):
    rng = torch.Generator().manual_seed(seed)
    tokens = torch.randint(VOCABULARY, (rows, length), generator=rng)
    tokens[0, 0] = START  # else transformers' generate adds it
    return tokens


@st.composite
def models(draw):
    encoder_heads, decoder_heads = draw(st.sampled_from([(1, 2), (2, 1), (2, 4), (3, 3)]))
    shape = config(
        d_model=12 * draw(st.integers(1, 2)),
        encoder_layers=draw(st.integers(1, 3)),
        encoder_attention_heads=encoder_heads,
        encoder_ffn_dim=draw(st.integers(8, 20)),
        decoder_layers=draw(st.integers(1, 3)),
        decoder_attention_heads=decoder_heads,
        decoder_ffn_dim=draw(st.integers(8, 20)),
        activation_function=draw(st.sampled_from(["gelu", "gelu_new"])),
    )
    torch.manual_seed(draw(st.integers(0, 1000)))
    return shaken(transformers.WhisperForConditionalGeneration(shape)).to(draw(dtypes)).eval()


@st.composite
def batches(draw, dtype, *, left=None):
    rows, length = draw(st.integers(1, 3)), draw(st.integers(1, LONGEST // 2))
    seed = draw(st.integers(0, 1000))
    inputs = {
        "input_features": sound(rows, seed).to(dtype),
        "decoder_input_ids": ids(rows, length, seed),
    }
    if draw(st.booleans()):
        side = draw(st.booleans()) if left is None else left
        inputs["decoder_attention_mask"] = padded(draw, rows, length, left=side)
    return inputs


@given(models(), st.data())
@settings(deadline=None, max_examples=30)
def test_outputs_loss_and_gradients_equal_transformers(theirs, data):
    inputs = data.draw(batches(theirs.dtype))
    labels = inputs["decoder_input_ids"].roll(1, dims=1)
    labels[:, 1::3] = -100
    assert_same_learning(theirs, inputs, {"labels": labels}, TOLERANCE[theirs.dtype])


def test_labels_alone_are_read_one_token_later():
    theirs = made()
    labels = ids()
    labels[0, 5:] = labels[1, 2:4] = -100
    assert_same_learning(theirs, {"input_features": sound()}, {"labels": labels}, SINGLE)


@given(models(), st.data(), st.integers(1, LONGEST // 2), st.booleans())
@settings(deadline=None, max_examples=20)
def test_generation_writes_what_transformers_writes(theirs, data, longest, ends):
    inputs = data.draw(batches(theirs.dtype, left=True))
    # Without a mask, transformers takes every padding token for padding.
    every = torch.ones_like(inputs["decoder_input_ids"])
    inputs = {"decoder_attention_mask": every, **inputs}
    ours, *_ = twin(theirs)
    free = ours.generate(**inputs, max_new_tokens=longest)
    end = int(free[0, -(longest + 1) // 2]) if ends else None
    stop = {"max_new_tokens": longest, "eos_token_id": end, "pad_token_id": 0 if ends else None}
    theirs.generation_config.eos_token_id = None
    for use_cache in (True, False):
        same = transformers.GenerationConfig(do_sample=False, use_cache=use_cache, **stop)
        expected = GenerationMixin.generate(theirs, **inputs, generation_config=same)
        assert ours.generate(**inputs, **stop, use_cache=use_cache).equal(expected)


def test_whispers_own_generation_writes_the_same_where_it_has_no_rules_to_follow():
    theirs = made()
    ours, *_ = twin(theirs)
    end = int(ours.generate(sound(), ids(), max_new_tokens=8)[0, 12])
    stop = {"max_new_tokens": 12, "eos_token_id": end, "pad_token_id": 0}
    found = ours.generate(sound(), ids(), **stop)
    plain = transformers.GenerationConfig(do_sample=False, **stop)
    expected = theirs.generate(sound(), decoder_input_ids=ids(), generation_config=plain)
    for row, other in zip(found[:, 8:].tolist(), expected.tolist(), strict=True):
        # Theirs leaves out the prompt, the end and what follows it.
        length = row.index(end) if end in row else len(row)
        assert row[:length] == other[:length]
        assert set(other[length:]) <= {0, end}


@given(models(), st.data())
@settings(deadline=None, max_examples=20)
def test_reading_in_parts_is_reading_at_once(theirs, data):
    ours, *_ = twin(theirs)
    inputs = data.draw(batches(theirs.dtype, left=True))
    tokens = inputs["decoder_input_ids"]
    mask = inputs.get("decoder_attention_mask", torch.ones_like(tokens))
    places, length = positions(mask), tokens.shape[1]
    cut = data.draw(st.integers(1, length))
    past, parts = None, []
    with torch.no_grad():
        encoded = ours.model.encoder(inputs["input_features"])
        whole = ours(
            inputs["input_features"],
            decoder_input_ids=tokens,
            decoder_attention_mask=mask,
            decoder_position_ids=places,
        ).logits
        for part in (slice(cut), slice(cut, length)):
            if tokens[:, part].shape[1]:
                output = ours(
                    encoder_outputs=encoded,
                    decoder_input_ids=tokens[:, part],
                    decoder_attention_mask=mask[:, : part.stop],
                    decoder_position_ids=places[:, part],
                    past_key_values=past,
                )
                past = output.past_key_values
                parts.append(output.logits)
    real = mask.bool()
    assert difference(torch.cat(parts, dim=1)[real], whole[real]) <= TOLERANCE[theirs.dtype]
    layers = theirs.config.decoder_layers
    assert [key.shape[2] for key, _ in past] == [length] * layers + [FRAMES // 2] * layers


def test_the_recording_is_heard_once(monkeypatch):
    ours, *_ = twin(made())
    heard = []
    ours.model.encoder.register_forward_hook(lambda *_: heard.append("encoder"))
    for layer in ours.model.decoder.layers:
        layer.encoder_attn.k_proj.register_forward_hook(lambda *_: heard.append("keys"))
    ours.generate(sound(), ids(), max_new_tokens=6)
    assert heard == ["encoder", "keys", "keys"]


def test_what_is_written_depends_on_the_recording_and_on_no_later_token():
    ours, *_ = twin(made())
    other = ids()
    other[:, 5:] = 3
    with torch.no_grad():
        logits = ours(sound(), decoder_input_ids=ids()).logits
        changed = ours(sound(), decoder_input_ids=other).logits
        elsewhere = ours(sound(seed=1), decoder_input_ids=ids()).logits
    assert logits[:, :5].equal(changed[:, :5])
    assert not logits[:, 5:].allclose(changed[:, 5:])
    assert not logits.allclose(elsewhere)


def test_a_row_of_nothing_but_padding_is_no_trouble():
    ours, *_ = twin(made())
    mask = torch.ones(3, 8, dtype=torch.long)
    mask[1] = 0
    inputs = {"decoder_input_ids": ids(), "decoder_attention_mask": mask}
    output = ours(sound(), **inputs, labels=ids(seed=1))
    output.loss.backward()
    assert output.logits.isfinite().all()
    assert all(p.grad.isfinite().all() for p in ours.parameters() if p.requires_grad)


def test_the_body_alone_equals_transformers():
    theirs = made("WhisperModel")
    ours, missing, unexpected = twin(theirs)
    assert (missing, unexpected) == ([], [])
    inputs = {
        "input_features": sound(),
        "decoder_inputs_embeds": torch.randn(3, 5, 16),
        "decoder_position_ids": torch.tensor([[4, 3, 9, 1, 0]] * 3),
    }
    with torch.no_grad():
        assert_equal(ours(**inputs), theirs(**inputs), SINGLE)
        assert ours(**inputs, use_cache=False).past_key_values is None


def test_saved_weights_load_in_transformers(tmp_path):
    torch.manual_seed(1)
    shape = config(architectures=["WhisperForConditionalGeneration"])
    ours = whisper.WhisperForConditionalGeneration(Config.from_hf(shape)).eval()
    save_model(ours, str(tmp_path / "model.safetensors"), metadata={"format": "pt"})
    shape.save_pretrained(tmp_path)
    theirs, loading = transformers.WhisperForConditionalGeneration.from_pretrained(
        tmp_path, output_loading_info=True
    )
    assert not any(loading.values())
    with torch.no_grad():
        inputs = {"input_features": sound(), "decoder_input_ids": ids()}
        assert_equal(ours(**inputs), theirs(**inputs), SINGLE)


def test_initial_weights_are_spread_as_in_transformers():
    torch.manual_seed(0)
    shape = config(d_model=64, init_std=0.05)
    ours = whisper.WhisperForConditionalGeneration(Config.from_hf(shape)).state_dict()
    theirs = transformers.WhisperForConditionalGeneration(shape).state_dict()
    assert ours.keys() == theirs.keys()
    for name, weight in theirs.items():
        torch.testing.assert_close(ours[name].std(), weight.std(), rtol=0.1, atol=1e-4)
        torch.testing.assert_close(ours[name].mean(), weight.mean(), rtol=0, atol=0.01)


def test_positions_of_frames_are_sinusoids_that_are_not_trained():
    # Both are computed in single precision, and off by 1e-4 at far positions.
    theirs = modeling_whisper.sinusoids(1500, 384)
    torch.testing.assert_close(sinusoids(1500, 384), theirs, atol=3e-4, rtol=0)
    ours = whisper.WhisperModel(Config.from_hf(config()))
    frozen = [name for name, p in ours.named_parameters() if not p.requires_grad]
    assert frozen == ["encoder.embed_positions.weight"]


@pytest.mark.parametrize("place", ["dropout", "attention_dropout", "activation_dropout"])
def test_every_dropout_is_for_training_only(place):
    ours = whisper.WhisperModel(replace(Config.from_hf(config()), **{place: 0.5}))
    with torch.no_grad():
        for training in (True, False):
            ours.train(training)
            states = [ours(sound(), decoder_input_ids=ids())[0] for _ in range(2)]
            assert (difference(*states) > 0) == training


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"activation_function": "relu"}, "activation_function: found 'relu'"),
        ({"scale_embedding": True}, "scale_embedding: found True"),
        ({"decoder_layerdrop": 0.1}, "decoder_layerdrop: found 0.1"),
        ({"apply_spec_augment": True}, "apply_spec_augment: found True"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings: found False"),
        ({"decoder_attention_heads": 3}, "not a multiple of decoder_attention_heads 3"),
        ({"d_model": 2}, "d_model 2: positions need two or more pairs"),
    ],
)
def test_other_architectures_are_refused(settings, told):
    with pytest.raises(ValueError, match=told):
        Config.from_hf(config(**settings))


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ({"input_features": sound(frames=18), "decoder_input_ids": ids()}, "found 18 frames; pad"),
        (
            {"input_features": sound(), "decoder_input_ids": ids(3, LONGEST + 1)},
            "found position 24; the model has 24",
        ),
        ({"input_features": sound()}, "expected either input ids or embeddings"),
    ],
)
def test_what_the_model_cannot_read_is_refused(inputs, told):
    ours, *_ = twin(made())
    with pytest.raises(ValueError, match=told):
        ours(**inputs)


def test_keys_have_no_bias_and_would_gain_nothing_by_one():
    ours, *_ = twin(made())
    keys = [name for name in ours.state_dict() if "k_proj" in name]
    assert keys
    assert all(name.endswith("weight") for name in keys)
    with torch.no_grad():
        inputs = {"input_features": sound(), "decoder_input_ids": ids()}
        before = ours(**inputs).logits
        for module in ours.modules():
            if isinstance(module, whisper._Attention):
                module.k_proj.bias = nn.Parameter(torch.randn(16))
        # The same is added to all of a query's scores, and softmax takes it out again.
        assert difference(ours(**inputs).logits, before) <= SINGLE
