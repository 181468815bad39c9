"""Backbones: initial weights, checkpoints with and without heads, numbers of parameters."""

import sys
from types import SimpleNamespace

import pytest
import torch
from transformers import AutoConfig, AutoModel, BertForPreTraining, LlamaForCausalLM, set_seed

from tests import tiny
from wxb.core import hub
from wxb.core.errors import WxbError
from wxb.core.params.backbones import Architecture, Backbone, Tokenizer
from wxb.core.params.training import Pretraining
from wxb.corpora.text import tokenizers
from wxb.training.backbones.tuning import parameter_count
from wxb.training.backbones.weights import initial_model, load_backbone

OBJECTIVES = {"bert": "mlm+nsp", "llama": "causal-lm"}
FULL = {"bert": BertForPreTraining, "llama": LlamaForCausalLM}
IDS = torch.tensor([[1, 7, 9, 3]])

each_type = pytest.mark.parametrize("model_type", sorted(OBJECTIVES))


class FakeTokenizer(SimpleNamespace):
    """The part of a tokenizer that a configuration needs."""

    pad_token_id, bos_token_id, eos_token_id = 0, 1, 2

    def __len__(self):
        return self.vocabulary


def backbone(model_type):
    architecture = Architecture(
        model_type=model_type,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1 if model_type == "llama" else None,
        intermediate_size=24,
        max_position_embeddings=32,
    )
    return Backbone(
        corpus="c",
        objective=OBJECTIVES[model_type],
        tokenizer=Tokenizer(kind="wordpiece", vocabulary=300),
        architecture=architecture,
        pretraining=Pretraining(steps=1, max_length=8, batch_size=1, learning_rate=1e-3),
    )


def build(model_type, seed=0):
    set_seed(seed)
    return initial_model(backbone(model_type), FakeTokenizer(vocabulary=60)).eval()


@each_type
def test_the_configuration_has_the_settings_of_params(model_type):
    model = build(model_type)
    assert isinstance(model, FULL[model_type])
    config = model.config
    assert (config.model_type, config.vocab_size, config.hidden_size) == (model_type, 60, 16)
    assert (config.num_hidden_layers, config.intermediate_size) == (2, 24)
    assert (config.pad_token_id, config.bos_token_id, config.eos_token_id) == (0, 1, 2)
    assert model.get_input_embeddings().weight is model.get_output_embeddings().weight


@each_type
def test_load_backbone_keeps_the_weights_of_a_pretrained_model(model_type, tmp_path):
    model = build(model_type)
    model.save_pretrained(tmp_path)
    inner = {"bert": "bert", "llama": "model"}[model_type]
    weights = getattr(model, inner).state_dict()
    loaded = load_backbone(tmp_path).eval()
    assert set(loaded.state_dict()) == {name for name in weights if not name.startswith("pooler")}
    assert all(torch.equal(weights[name], value) for name, value in loaded.state_dict().items())
    with torch.inference_mode():
        expected = getattr(model, inner)(IDS).last_hidden_state
        assert torch.equal(loaded(IDS).last_hidden_state, expected)


@each_type
def test_a_checkpoint_keeps_its_weights_and_heads(model_type, tmp_path):
    saved = build(model_type)
    saved.save_pretrained(tmp_path / "full")
    saved.base_model.save_pretrained(tmp_path / "base")
    for folder, objective in (("full", "none"), ("base", "none"), ("full", OBJECTIVES[model_type])):
        settings = Backbone(
            corpus="c",
            objective=objective,
            checkpoint=str(tmp_path / folder),
            pretraining=None if objective == "none" else backbone(model_type).pretraining,
        )
        model = initial_model(settings, FakeTokenizer(vocabulary=60))
        larger = initial_model(settings, FakeTokenizer(vocabulary=63))
        assert larger.get_input_embeddings().num_embeddings == larger.config.vocab_size == 63
        expected = saved if folder == "full" else saved.base_model
        assert type(model) is type(expected)
        weights = model.state_dict()
        assert weights.keys() == expected.state_dict().keys()
        assert all(torch.equal(weights[k], value) for k, value in expected.state_dict().items())
    saved.half().save_pretrained(tmp_path / "full")  # the last settings are those of pretraining
    assert initial_model(settings, FakeTokenizer(vocabulary=60)).dtype == torch.float32


def test_a_language_model_without_its_head_gets_no_random_one(tmp_path):
    saved, settings = build("llama"), backbone("llama").pretraining
    saved.save_pretrained(tmp_path)  # without the head, which shares the table of embeddings
    saved.config.tie_word_embeddings = False
    saved.config.save_pretrained(tmp_path)
    block = {"corpus": "c", "objective": "causal-lm", "checkpoint": f"{tmp_path}"}
    with pytest.raises(WxbError, match=r"missing tensors: lm_head\.weight"):
        initial_model(Backbone(**block, pretraining=settings), FakeTokenizer(vocabulary=60))


def test_a_short_text_changes_no_later_one(tmp_path):
    sparse = AutoConfig.for_model("big_bird", block_size=2, num_random_blocks=1, **tiny.SHAPE)
    AutoModel.from_config(sparse).save_pretrained(tmp_path)
    model, text = load_backbone(tmp_path).eval(), torch.arange(24)[None]
    first, _ = (model(ids).last_hidden_state for ids in (text, text[:, :3]))
    assert torch.equal(model(text).last_hidden_state, first)


def test_a_packaged_checkpoint_loads_without_network(cwd, monkeypatch):
    monkeypatch.setattr(hub, "_snapshot", lambda *_: pytest.fail("the hub was used"))
    packaged = Backbone(corpus="c", objective="none", checkpoint="minilm")
    tokenizer = tokenizers.load("minilm")
    text = "Zoë Müller moved to  Paris."
    encoded = tokenizers.encode(tokenizer, [text])
    words = [text[start:end] for start, end in zip(encoded.starts, encoded.ends, strict=True)]
    assert words == ["Zoë", "Müller", "moved", "to", "Paris", "."]
    initial_model(packaged, tokenizer).save_pretrained(cwd / "saved")
    assert str(sys.prefix) not in (cwd / "saved" / "config.json").read_text()
    assert load_backbone(cwd / "saved").config.vocab_size == len(tokenizer)


def test_shared_parameters_count_once_and_frozen_ones_are_not_trainable():
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3, bias=False))
    assert parameter_count(model) == 9 + 3 + 9
    model[1].weight = model[0].weight
    assert parameter_count(model) == 9 + 3
    model[0].bias.requires_grad = False
    assert parameter_count(model, trainable=True) == 9
