"""Tests of Whisper alone; those of all architectures are in test_contract.py."""

import torch
from transformers.models.whisper import modeling_whisper

from tests.models.architectures import WHISPER
from tests.models.test_contract import generate
from wxb.models import whisper
from wxb.models.whisper import Config, sinusoids


def test_the_recording_is_encoded_once():
    ours = WHISPER.ours()
    calls = []
    ours.model.encoder.register_forward_hook(lambda *_: calls.append("encoder"))
    for layer in ours.model.decoder.layers:
        layer.encoder_attn.k_proj.register_forward_hook(lambda *_: calls.append("keys"))
    generate(WHISPER, ours, WHISPER.inputs(), max_new_tokens=6)
    assert calls == ["encoder", "keys", "keys"]


def test_positions_of_frames_are_frozen_sinusoids():
    # An angle of at most 1500 is the rounded product of a rounded frequency: in either version it
    # errs by at most 1500 times eps, that is two roundings.
    far = 2 * 1500 * torch.finfo(torch.float32).eps
    theirs = modeling_whisper.sinusoids(1500, 384)
    torch.testing.assert_close(sinusoids(1500, 384), theirs, atol=far, rtol=0)
    ours = whisper.WhisperModel(Config.from_hf(WHISPER.config()))
    frozen = [name for name, p in ours.named_parameters() if not p.requires_grad]
    assert frozen == ["encoder.embed_positions.weight"]
