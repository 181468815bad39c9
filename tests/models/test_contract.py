"""Tests of all native architectures, compared with transformers."""

from functools import partial

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_model
from transformers import GenerationMixin

from tests.models.architectures import (
    ALL,
    BERT,
    DECODERS,
    GPT2,
    LLAMA,
    LONGEST,
    PLAIN,
    WHISPER,
    batches,
    models,
)
from tests.models.equal import SINGLE, assert_equal, assert_same_training, difference, twin
from wxb.models.decoding import complete, decoder_forward

each = pytest.mark.parametrize("kind", ALL, ids=str)
each_decoder = pytest.mark.parametrize("kind", DECODERS, ids=str)


def generate(kind, model, inputs, *, use_cache=True, **options):
    """The tokens that our model generates after the inputs of transformers' `generate`."""
    inputs, options = {**inputs}, {k: v for k, v in options.items() if v is not None}
    forward = partial(model, use_cache=use_cache)
    if kind is WHISPER:
        encoded = model.model.encoder(inputs.pop("input_features"))
        forward = decoder_forward(model, encoded, use_cache=use_cache)
    inputs = {key.removeprefix(kind.prefix): tensor for key, tensor in inputs.items()}
    with torch.no_grad():
        return complete(forward, **inputs, **options).tokens


@each
@given(data=st.data())
@settings(deadline=None, max_examples=30)
def test_outputs_loss_and_gradients_equal_transformers(kind, data):
    theirs = data.draw(models(kind))
    inputs = data.draw(batches(kind, theirs.dtype, shortest=kind.shortest))
    labels = kind.labels(inputs[f"{kind.prefix}input_ids"])
    assert_same_training(theirs, inputs, labels, kind.limit(theirs.dtype))


@each_decoder
@given(data=st.data(), longest=st.integers(1, LONGEST // 2), ends=st.booleans())
@settings(deadline=None, max_examples=20)
def test_generation_equals_transformers(kind, data, longest, ends):
    theirs = data.draw(models(kind))
    inputs = data.draw(batches(kind, theirs.dtype, left=True))
    # Without a mask, transformers guesses one from the ids of padding.
    no_padding = torch.ones_like(inputs[f"{kind.prefix}input_ids"])
    inputs = {f"{kind.prefix}attention_mask": no_padding, **inputs}
    ours, *_ = twin(theirs)
    free = generate(kind, ours, inputs, max_new_tokens=longest)
    end = int(free[0, -(longest + 1) // 2]) if ends else None
    stop = {"max_new_tokens": longest, "eos_token_id": end, "pad_token_id": 0 if ends else None}
    theirs.generation_config.eos_token_id = None
    for use_cache in (True,) if kind is WHISPER else (True, False):
        same = transformers.GenerationConfig(do_sample=False, use_cache=use_cache, **stop)
        expected = GenerationMixin.generate(theirs, **inputs, generation_config=same)
        generated = generate(kind, ours, inputs, **stop, use_cache=use_cache)
        assert generated.equal(expected[:, no_padding.shape[1] :])


@each_decoder
def test_positions_follow_those_of_the_cache(kind):
    ours, inputs, ids = kind.ours(), kind.inputs(), f"{kind.prefix}input_ids"
    with torch.no_grad():
        whole = ours(**inputs).logits
        past = ours(**{**inputs, ids: inputs[ids][:, :5]}).past_key_values
        rest = ours(**{**inputs, ids: inputs[ids][:, 5:]}, past_key_values=past).logits
    assert difference([rest], [whole[:, 5:]]) <= SINGLE


@each
def test_the_backbone_equals_transformers(kind):
    theirs = kind.theirs(kind.body)
    ours, missing, unexpected = twin(theirs)
    assert (missing, unexpected) == ([], [])
    inputs = kind.inputs()
    if kind in DECODERS:
        inputs[f"{kind.prefix}position_ids"] = torch.tensor([[4, 3, 9, 1, 0, 2, 7, 5]] * 3)
    with torch.no_grad():
        assert_equal(ours(**inputs), theirs(**inputs), SINGLE)
        if kind in DECODERS:
            assert ours(**inputs, use_cache=False).past_key_values is None
        if kind in (BERT, LLAMA):
            embedded = {"inputs_embeds": torch.randn(3, 5, theirs.config.hidden_size)}
            assert_equal(ours(**embedded), theirs(**embedded), SINGLE)


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in ALL for name in (kind.body, kind.head)], ids=str
)
def test_saved_weights_load_in_transformers(kind, name, tmp_path):
    for index, settings_ in enumerate(kind.saved):
        folder = tmp_path / str(index)
        folder.mkdir()
        ours = kind.initial(name, **settings_)
        save_model(ours, str(folder / "model.safetensors"), metadata={"format": "pt"})
        kind.config(architectures=[name], **settings_).save_pretrained(folder)
        cls = transformers.AutoModel if name == kind.body else getattr(transformers, name)
        theirs, loading = cls.from_pretrained(folder, output_loading_info=True)
        assert not any(loading.values())
        with torch.no_grad():
            assert_equal(ours(**kind.inputs()), theirs(**kind.inputs()), SINGLE)


def test_initial_weights_have_the_distribution_of_transformers():
    """Only a GPT-2 is trained from them."""
    wide = {"n_embd": 64, "initializer_range": 0.05}
    ours = GPT2.initial(**wide).state_dict()
    theirs = transformers.GPT2LMHeadModel(GPT2.config(**wide)).state_dict()
    assert ours.keys() == theirs.keys()
    for name, weight in theirs.items():
        # Means and deviations of n normal values deviate by s sqrt(1 / n) and s sqrt(1 / 2n).
        limit = 6 * float(weight.std()) * (2 / weight.numel()) ** 0.5
        torch.testing.assert_close(ours[name].std(), weight.std(), rtol=0, atol=limit)
        torch.testing.assert_close(ours[name].mean(), weight.mean(), rtol=0, atol=limit)


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in ALL for name in kind.dropouts], ids=str
)
def test_every_dropout_is_off_in_evaluation(kind, name):
    ours = kind.initial(kind.body, **{**dict.fromkeys(kind.dropouts, 0.0), name: 0.5})
    with torch.no_grad():
        for training in (True, False):
            ours.train(training)
            states = [ours(**kind.inputs())[0] for _ in range(2)]
            assert (not states[0].equal(states[1])) == training


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        (BERT, {"hidden_act": "relu"}, "hidden_act: found 'relu'"),
        (BERT, {"is_decoder": True}, "is_decoder: found True"),
        (BERT, {"tie_word_embeddings": False}, "tie_word_embeddings: found False"),
        (BERT, {"position_embedding_type": "relative_key"}, "found 'relative_key'"),
        (GPT2, {"activation_function": "relu"}, "activation_function: found 'relu'"),
        (GPT2, {"scale_attn_by_inverse_layer_idx": True}, "inverse_layer_idx: found True"),
        (GPT2, {"scale_attn_weights": False}, "scale_attn_weights: found False"),
        (GPT2, {"reorder_and_upcast_attn": True}, "reorder_and_upcast_attn: found True"),
        (GPT2, {"add_cross_attention": True}, "add_cross_attention: found True"),
        (GPT2, {"tie_word_embeddings": False}, "tie_word_embeddings: found False"),
        (LLAMA, {"hidden_act": "gelu"}, "hidden_act: found 'gelu'"),
        (LLAMA, {"attention_bias": True}, "attention_bias: found True"),
        (LLAMA, {"mlp_bias": True}, "mlp_bias: found True"),
        (LLAMA, {"rope_parameters": {**PLAIN, "rope_type": "dynamic", "factor": 2.0}}, "dynamic"),
        (LLAMA, {"rope_parameters": {**PLAIN, "partial_rotary_factor": 0.5}}, "found 0.5"),
        (WHISPER, {"activation_function": "relu"}, "activation_function: found 'relu'"),
        (WHISPER, {"scale_embedding": True}, "scale_embedding: found True"),
        (WHISPER, {"decoder_layerdrop": 0.1}, "decoder_layerdrop: found 0.1"),
        (WHISPER, {"apply_spec_augment": True}, "apply_spec_augment: found True"),
        (WHISPER, {"tie_word_embeddings": False}, "tie_word_embeddings: found False"),
    ],
)
def test_unsupported_settings_are_errors(kind, changes, message):
    with pytest.raises(ValueError, match=message):
        kind.module.Config.from_hf(kind.config(**changes))


def test_more_tokens_than_positions_are_errors():
    with pytest.raises(ValueError, match="found position 24; the model has 24"):
        GPT2.ours()(**GPT2.inputs(3, LONGEST + 1))


def test_a_text_of_padding_alone_equals_transformers():
    inputs = {**BERT.inputs(rows=2), "attention_mask": torch.tensor([[1] * 8, [0] * 8])}
    assert_same_training(BERT.theirs(), inputs, BERT.labels(inputs["input_ids"]), SINGLE)
