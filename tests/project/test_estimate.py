"""Counts of `wxb estimate`, compared with real models."""

import json

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import set_seed

from tests.commands import wxb
from tests.project_copy import ROOT
from wxb import tasks
from wxb.core.params import check, read_yaml
from wxb.corpora.text import tokenizers
from wxb.project.estimate import shape
from wxb.project.estimate.estimate import estimates
from wxb.project.estimate.shape import backbone_shape, experiment_shape
from wxb.training.backbones import weights
from wxb.training.backbones.size import parameter_count

CONTENT = read_yaml(ROOT / "params.yaml")
LABELS = [f"label {index}" for index in range(shape.LABELS)]
TRAINED = [
    name for name, e in CONTENT["experiments"].items() if e["method"] not in ("baseline", "crf")
]


def small(content):
    for block in content["backbones"].values():
        if "architecture" in block:
            block["architecture"] |= {"hidden_size": 64, "num_hidden_layers": 2}
    return content


@pytest.fixture(scope="module")
def params():
    return check(small(json.loads(json.dumps(CONTENT))))


@pytest.fixture(autouse=True)
def _empty_project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def build(params, name, folder):
    """The model of an experiment on a backbone with initial weights, and that backbone."""
    experiment = params.experiments[name]
    with shape.backbone_folder(params, experiment.backbone) as temporary:
        tokenizer = tokenizers.load(temporary)
        set_seed(0)
        backbone = weights.initial_model(params.backbones[experiment.backbone], tokenizer)
        backbone.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    method = tasks.method_of(experiment, LABELS, tokenizers.load(folder))
    return method.build(folder), backbone


@pytest.mark.parametrize("name", TRAINED)
def test_parameters_are_those_of_the_real_model(params, tmp_path, name):
    model, backbone = build(params, name, tmp_path / "backbone")
    estimated = experiment_shape(params, name)
    assert estimated.parameters == parameter_count(model)
    assert estimated.trainable == parameter_count(model, trainable=True)
    pretrained = backbone_shape(params, params.experiments[name].backbone)
    assert pretrained.parameters == parameter_count(backbone)


def test_disk_is_that_of_the_files(params, tmp_path):
    build(params, "ner-decoder", tmp_path / "backbone")
    (pretraining, _) = estimates(params, "ner-decoder", timed=False)
    header = 8 + int.from_bytes(
        (tmp_path / "backbone/model.safetensors").read_bytes()[:8], "little"
    )
    assert (
        pretraining.model_bytes + header == (tmp_path / "backbone/model.safetensors").stat().st_size
    )


@pytest.mark.parametrize("name", ["ner-encoder", "ner-decoder"])
def test_flops_are_those_of_training(params, tmp_path, name):
    model, _ = build(params, name, tmp_path / "backbone")
    ids = torch.randint(10, 100, (4, 32))
    targets = {key: torch.zeros_like(ids) for key in ("tags", "starts", "ends")}
    with FlopCounterMode(display=False) as counter:
        model(input_ids=ids, attention_mask=torch.ones_like(ids), **targets)["loss"].backward()
    flops = experiment_shape(params, name).training_flops(4, 32)
    assert flops == pytest.approx(counter.get_total_flops(), rel=0.1)


def test_frozen_models_need_less_work_and_memory(params):
    full, lora, four_bit = (
        experiment_shape(params, f"ner-decoder{name}") for name in ("", "-lora", "-qlora")
    )
    assert lora.training_flops(8, 64) < full.training_flops(8, 64)
    assert lora.optimizer_bytes < full.optimizer_bytes
    assert four_bit.weight_bytes < lora.weight_bytes == 4 * lora.parameters
    assert full.activation_bytes(8, 64) == pytest.approx(2 * full.activation_bytes(4, 64), rel=0.01)


def test_processes_divide_batches_and_with_fsdp_the_model():
    def estimate(**settings):
        content = small(json.loads(json.dumps(CONTENT)))
        content["experiments"]["ner-decoder"]["training"] |= settings
        return [*estimates(check(content), "ner-decoder", timed=False)][-1]

    one, two = estimate(), estimate(processes=2)
    sharded = estimate(processes=2, fsdp=True)
    assert (one.flops, one.updates) == (two.flops, two.updates) == (sharded.flops, sharded.updates)
    assert one.memory > two.memory > sharded.memory
    model = 16 * one.parameters
    assert two.memory - sharded.memory == pytest.approx(model / 2, abs=1)


@pytest.mark.slow
def test_a_model_too_large_for_this_machine_is_estimated(tmp_path):
    (tmp_path / "params.yaml").write_text((ROOT / "params.yaml").read_text())
    (tmp_path / "params").symlink_to(ROOT / "params")
    for module in ("wxb", "stages"):
        (tmp_path / module).symlink_to(ROOT / module)
    (tmp_path / "dvc.yaml").write_text((ROOT / "dvc.yaml").read_text())
    assert wxb("params", "full").returncode == 0
    (head,) = json.loads(wxb("estimate", "ner-decoder", "--no-time", "--json").stdout)
    # LLaMA-3-8B without its output table, the head, and matrices of rank 32 on four layers.
    assert 7.5e9 < head["parameters"] < 7.6e9
    assert 2.7e7 < head["trainable"] < 2.9e7
    assert head["gpus"]["H100"] < head["gpus"]["A100"]
    (lora,) = json.loads(wxb("estimate", "ner-decoder-lora", "--no-time", "--json").stdout)
    assert lora["gpus"]["L4"] is None  # 30 GB of weights in full precision
    assert "too small" in wxb("estimate", "ner-decoder-lora", "--no-time", COLUMNS="200").stdout
