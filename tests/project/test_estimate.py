"""What `wxb estimate` counts, beside models that are really made."""

import json

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import set_seed

from tests.commands import wxb
from tests.copied import ROOT
from wxb import tasks
from wxb.core.params import check, read_yaml
from wxb.corpora.text import tokenizers
from wxb.project.estimate import estimate, shape
from wxb.training.backbones import weights
from wxb.training.backbones.size import parameters

CONTENT = read_yaml(ROOT / "params.yaml")
LABELS = [f"label {number}" for number in range(shape.LABELS)]
EXPERIMENTS = [*CONTENT["experiments"]]


def small(content):
    for block in content["backbones"].values():
        block["architecture"] |= {"hidden_size": 64, "num_hidden_layers": 2}
    return content


@pytest.fixture(scope="module")
def params():
    return check(small(json.loads(json.dumps(CONTENT))))


@pytest.fixture(autouse=True)
def nothing_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def made(params, name, folder):
    """The model of an experiment on a backbone with really initial weights, and that backbone."""
    experiment = params.experiments[name]
    with shape.backbone(params, experiment.backbone) as empty:
        tokenizer = tokenizers.load(empty)
        set_seed(0)
        backbone = weights.initial(params.backbones[experiment.backbone], tokenizer)
        backbone.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    method = tasks.method_of(experiment, LABELS, tokenizers.load(folder))
    return method.build(folder), backbone


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_parameters_are_those_of_the_model_that_is_made(params, tmp_path, name):
    model, backbone = made(params, name, tmp_path / "backbone")
    counted = shape.of_experiment(params, name)
    assert counted.parameters == parameters(model)
    assert counted.trainable == parameters(model, trainable=True)
    before = shape.of_backbone(params, params.experiments[name].backbone)
    assert before.parameters == parameters(backbone)


def test_disk_is_that_of_the_files(params, tmp_path):
    made(params, "ner-decoder", tmp_path / "backbone")
    (told, _) = estimate.of(params, "ner-decoder", timed=False)
    header = 8 + int.from_bytes(
        (tmp_path / "backbone/model.safetensors").read_bytes()[:8], "little"
    )
    assert told.model_bytes + header == (tmp_path / "backbone/model.safetensors").stat().st_size


@pytest.mark.parametrize("name", ["ner-encoder", "ner-decoder"])
def test_operations_are_those_that_training_takes(params, tmp_path, name):
    model, _ = made(params, name, tmp_path / "backbone")
    ids = torch.randint(10, 100, (4, 32))
    targets = {key: torch.zeros_like(ids) for key in ("tags", "starts", "ends")}
    with FlopCounterMode(display=False) as counted:
        model(input_ids=ids, attention_mask=torch.ones_like(ids), **targets)["loss"].backward()
    told = shape.of_experiment(params, name).training_flops(4, 32)
    assert told == pytest.approx(counted.get_total_flops(), rel=0.1)


def test_what_is_frozen_costs_less_to_train_and_to_keep(params):
    whole, lora, four_bit = (
        shape.of_experiment(params, f"ner-decoder{name}") for name in ("", "-lora", "-qlora")
    )
    assert lora.training_flops(8, 64) < whole.training_flops(8, 64)
    assert lora.learning < whole.learning
    assert four_bit.weights < lora.weights == 4 * lora.parameters
    assert whole.activations(8, 64) == pytest.approx(2 * whole.activations(4, 64), rel=0.01)


def test_several_processes_divide_work_and_with_fsdp_the_model():
    def told(**settings):
        content = small(json.loads(json.dumps(CONTENT)))
        content["experiments"]["ner-decoder"]["training"] |= settings
        return [*estimate.of(check(content), "ner-decoder", timed=False)][-1]

    one, two, sharded = told(), told(processes=2), told(processes=2, fsdp=True)
    assert (one.flops, one.updates) == (two.flops, two.updates) == (sharded.flops, sharded.updates)
    assert one.memory > two.memory > sharded.memory
    model = 16 * one.parameters
    assert two.memory - sharded.memory == pytest.approx(model / 2, abs=1)


@pytest.mark.slow
def test_a_model_too_large_for_this_machine_is_told_of(tmp_path):
    (tmp_path / "params.yaml").write_text((ROOT / "params.yaml").read_text())
    (tmp_path / "params").symlink_to(ROOT / "params")
    for module in ("wxb", "stages"):
        (tmp_path / module).symlink_to(ROOT / module)
    (tmp_path / "dvc.yaml").write_text((ROOT / "dvc.yaml").read_text())
    assert wxb("params", "full").returncode == 0
    (told,) = json.loads(wxb("estimate", "ner-decoder", "--no-time", "--json").stdout)
    # LLaMA-3-8B without its output table, the head, and matrices of rank 32 on four layers.
    assert 7.5e9 < told["parameters"] < 7.6e9
    assert 2.7e7 < told["trainable"] < 2.9e7
    assert told["gpus"]["H100"] < told["gpus"]["A100"]
    (whole,) = json.loads(wxb("estimate", "ner-decoder-lora", "--no-time", "--json").stdout)
    assert whole["gpus"]["L4"] is None  # 30 GB of weights in full precision
    assert "too small" in wxb("estimate", "ner-decoder-lora", "--no-time", COLUMNS="200").stdout
