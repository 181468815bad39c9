"""Tests of Whisper alone; those of all architectures are in test_contract.py."""

import pytest
import torch
import transformers
from torch import nn
from transformers.models.whisper import modeling_whisper

from tests.models.architectures import WHISPER, random_audio
from tests.models.equal import TOLERANCE, difference, twin
from wxb.models import whisper
from wxb.models.whisper import Config, sinusoids

SINGLE = TOLERANCE[torch.float32]


def tokens():
    return WHISPER.inputs()["decoder_input_ids"]


def test_generation_equals_that_of_transformers_whisper_without_rules():
    theirs = WHISPER.theirs()
    ours, *_ = twin(theirs)
    end = int(ours.generate(random_audio(), tokens(), max_new_tokens=8)[0, 12])
    stop = {"max_new_tokens": 12, "eos_token_id": end, "pad_token_id": 0}
    actual = ours.generate(random_audio(), tokens(), **stop)
    plain = transformers.GenerationConfig(do_sample=False, **stop)
    expected = theirs.generate(random_audio(), decoder_input_ids=tokens(), generation_config=plain)
    for row, their_row in zip(actual[:, 8:].tolist(), expected.tolist(), strict=True):
        # Theirs returns neither the prompt nor the end nor later tokens.
        length = row.index(end) if end in row else len(row)
        assert row[:length] == their_row[:length]
        assert set(their_row[length:]) <= {0, end}


def test_the_recording_is_encoded_once():
    ours = WHISPER.ours()
    calls = []
    ours.model.encoder.register_forward_hook(lambda *_: calls.append("encoder"))
    for layer in ours.model.decoder.layers:
        layer.encoder_attn.k_proj.register_forward_hook(lambda *_: calls.append("keys"))
    ours.generate(random_audio(), tokens(), max_new_tokens=6)
    assert calls == ["encoder", "keys", "keys"]


def test_positions_of_frames_are_frozen_sinusoids():
    # Both are computed in single precision, with errors of 1e-4 at far positions.
    theirs = modeling_whisper.sinusoids(1500, 384)
    torch.testing.assert_close(sinusoids(1500, 384), theirs, atol=3e-4, rtol=0)
    ours = whisper.WhisperModel(Config.from_hf(WHISPER.config()))
    frozen = [name for name, p in ours.named_parameters() if not p.requires_grad]
    assert frozen == ["encoder.embed_positions.weight"]


def test_another_number_of_frames_is_an_error():
    with pytest.raises(ValueError, match="found 18 frames; pad"):
        WHISPER.ours()(random_audio(frames=18), decoder_input_ids=tokens())


def test_keys_have_no_bias_as_it_would_change_nothing():
    ours = WHISPER.ours()
    keys = [name for name in ours.state_dict() if "k_proj" in name]
    assert keys
    assert all(name.endswith("weight") for name in keys)
    with torch.no_grad():
        inputs = {"input_features": random_audio(), "decoder_input_ids": tokens()}
        before = ours(**inputs).logits
        for module in ours.modules():
            if isinstance(module, whisper._Attention):
                module.k_proj.bias = nn.Parameter(torch.randn(16))
        # It adds the same to all scores of a query, which softmax cancels.
        assert difference(ours(**inputs).logits, before) <= SINGLE
