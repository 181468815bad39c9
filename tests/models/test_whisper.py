"""What of Whisper is no other architecture's; the rest is in test_contract.py."""

import pytest
import torch
import transformers
from torch import nn
from transformers.models.whisper import modeling_whisper

from tests.models.architectures import WHISPER, random_audio
from tests.models.equal import TOLERANCE, assert_same_learning
from wxb.lessons.parity import difference, twin
from wxb.models import whisper
from wxb.models.whisper import Config, sinusoids

SINGLE = TOLERANCE[torch.float32]


def tokens():
    return WHISPER.inputs()["decoder_input_ids"]


def test_labels_alone_are_read_one_token_later():
    theirs = WHISPER.theirs()
    labels = tokens()
    labels[0, 5:] = labels[1, 2:4] = -100
    assert_same_learning(theirs, {"input_features": random_audio()}, {"labels": labels}, SINGLE)


def test_whispers_own_generation_writes_the_same_where_it_has_no_rules_to_follow():
    theirs = WHISPER.theirs()
    ours, *_ = twin(theirs)
    end = int(ours.generate(random_audio(), tokens(), max_new_tokens=8)[0, 12])
    stop = {"max_new_tokens": 12, "eos_token_id": end, "pad_token_id": 0}
    found = ours.generate(random_audio(), tokens(), **stop)
    plain = transformers.GenerationConfig(do_sample=False, **stop)
    expected = theirs.generate(random_audio(), decoder_input_ids=tokens(), generation_config=plain)
    for row, other in zip(found[:, 8:].tolist(), expected.tolist(), strict=True):
        # Theirs leaves out the prompt, the end and what follows it.
        length = row.index(end) if end in row else len(row)
        assert row[:length] == other[:length]
        assert set(other[length:]) <= {0, end}


def test_the_recording_is_heard_once(monkeypatch):
    ours = WHISPER.ours()
    heard = []
    ours.model.encoder.register_forward_hook(lambda *_: heard.append("encoder"))
    for layer in ours.model.decoder.layers:
        layer.encoder_attn.k_proj.register_forward_hook(lambda *_: heard.append("keys"))
    ours.generate(random_audio(), tokens(), max_new_tokens=6)
    assert heard == ["encoder", "keys", "keys"]


def test_what_is_written_depends_on_the_recording():
    ours = WHISPER.ours()
    with torch.no_grad():
        logits, others = (
            ours(random_audio(seed=seed), decoder_input_ids=tokens()).logits for seed in (0, 1)
        )
    assert not logits.allclose(others)


def test_positions_of_frames_are_sinusoids_that_are_not_trained():
    # Both are computed in single precision, and off by 1e-4 at far positions.
    theirs = modeling_whisper.sinusoids(1500, 384)
    torch.testing.assert_close(sinusoids(1500, 384), theirs, atol=3e-4, rtol=0)
    ours = whisper.WhisperModel(Config.from_hf(WHISPER.config()))
    frozen = [name for name, p in ours.named_parameters() if not p.requires_grad]
    assert frozen == ["encoder.embed_positions.weight"]


def test_frames_that_the_model_was_not_made_for_are_refused():
    with pytest.raises(ValueError, match="found 18 frames; pad"):
        WHISPER.ours()(random_audio(frames=18), decoder_input_ids=tokens())


def test_keys_have_no_bias_and_would_gain_nothing_by_one():
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
        # The same is added to all of a query's scores, and softmax takes it out again.
        assert difference(ours(**inputs).logits, before) <= SINGLE
