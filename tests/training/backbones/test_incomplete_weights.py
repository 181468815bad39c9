"""Weights of trained models and backbones that are missing, unexpected or not finite."""

import shutil
from functools import partial

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel

import wxb
from tests.ner_models import save_base, trained
from wxb.core.errors import WxbError
from wxb.training.backbones.weights import load_backbone

# A file of a trained model, and a tensor of it.
TENSORS = [
    ("tagger-full", "model.safetensors", "encoder.layer.1.output.dense.weight"),
    ("tagger-full", "head.safetensors", "tag.weight"),
    ("tagger-lora", "adapter_model.safetensors", "layers.1.self_attn.q_proj.lora_B.weight"),
    ("generator-full", "model.safetensors", "model.layers.1.mlp.up_proj.weight"),
]


def add(tensors, name):
    tensors[name.replace("1.", "7.") if "1." in name else f"more.{name}"] = tensors[name].clone()


def set_value(value, tensors, name):
    tensors[name].view(-1)[0] = value


CHANGES = {
    "missing": dict.pop,
    "unexpected": add,
    "nan": partial(set_value, torch.nan),
    "infinite": partial(set_value, torch.inf),
}


def edit(file, change, name):
    tensors = load_file(file)
    change(tensors, next(full for full in tensors if full.endswith(name)))
    save_file(tensors, file, metadata={"format": "pt"})


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for kind in ("bert", "llama"):
        save_base(folder / kind, kind)
    for case in {case for case, _, _ in TENSORS}:
        trained(folder, case).save(folder / case)
    return folder


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(("case", "file", "name"), TENSORS)
def test_a_trained_model_with_wrong_weights_is_an_error(models, tmp_path, case, file, name, change):
    shutil.copytree(models, tmp_path, dirs_exist_ok=True)
    wxb.load(tmp_path / case)
    edit(tmp_path / case / file, CHANGES[change], name)
    kind = change if change in ("missing", "unexpected") else "not finite"
    tensor = name.replace("1.", r"\d.").replace("weight", ".*weight")  # peft adds its own name
    with pytest.raises(WxbError, match=rf"{file}: .*{kind}.*{tensor}"):
        wxb.load(tmp_path / case)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("bert", "layer.1.attention.self.value.weight"),
        ("llama", "layers.1.self_attn.q_proj.weight"),
    ],
)
@pytest.mark.parametrize("native", [False, True])
def test_a_backbone_with_wrong_weights_is_an_error(models, tmp_path, kind, name, change, native):
    shutil.copytree(models / kind, tmp_path, dirs_exist_ok=True)
    load_backbone(tmp_path, native=native)
    edit(tmp_path / "model.safetensors", CHANGES[change], name)
    with pytest.raises(WxbError, match=r"model\.safetensors: .*(value|q_proj)"):
        load_backbone(tmp_path, native=native)


def test_buffers_of_older_versions_are_ignored(tmp_path):
    GPT2LMHeadModel(GPT2Config(vocab_size=9, n_embd=12, n_layer=1)).save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    old = {f"transformer.h.0.attn.{name}": torch.ones(2) for name in ("bias", "masked_bias")}
    save_file(load_file(file) | old, file, metadata={"format": "pt"})
    load_backbone(tmp_path, generative=True)
