"""What stages ask of a machine: by verb, by stage, and never a reason to run one again."""

import json

import pytest

from tests.copied import ROOT
from wxb.core.params import ParamsError, check, load, read_yaml


def params(**asked):
    return check(json.loads(json.dumps(read_yaml(ROOT / "params.yaml"))) | {"resources": asked})


def test_a_stage_asks_as_its_verb_does_and_for_more():
    found = params(
        train={"mem_mb": 4000, "runtime": 30, "slurm_partition": "gpu"},
        **{"train@ner-generative": {"mem_mb": 9000, "gpu": 1}},
    )
    assert found.asked("train@ner-encoder") == {
        "mem_mb": 4000,
        "runtime": 30,
        "slurm_partition": "gpu",
    }
    assert found.asked("train@ner-generative") == {
        "mem_mb": 9000,
        "runtime": 30,
        "slurm_partition": "gpu",
        "gpu": 1,
    }
    assert found.asked("evaluate@ner-encoder") == {}


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"trian": {}}, r"resources.trian: unknown verb 'trian'.*did you mean 'train'"),
        ({"train@ner-encodr": {}}, r"experiments has no 'ner-encodr'.*'ner-encoder'"),
        ({"train": {"memory": 1}}, r"resources.train.memory: unknown key"),
        ({"train": {"runtime": 0}}, r"resources.train.runtime: found 0"),
        ({"train@ner-encoder": {"nodes": 2}}, r"nodes: found 2; .*`processes`, 1 of train@ner-enc"),
    ],
)
def test_slips_are_told(asked, told):
    with pytest.raises(ParamsError, match=told):
        params(**asked)


def test_a_training_over_nodes_calls_srun_itself():
    content = json.loads(json.dumps(read_yaml(ROOT / "params.yaml")))
    content["experiments"]["ner-encoder"]["training"]["processes"] = 4
    content["resources"] = {"train@ner-encoder": {"nodes": 2, "gpu": 4}}
    found = check(content)
    assert found.nodes("train@ner-encoder") == 2
    asked = {"nodes": 2, "gpu": 4, "mpi": "srun", "tasks": 4, "cpus_per_task": 1}
    assert found.asked("train@ner-encoder") == {**asked, "tasks_per_gpu": 1}
    assert found.nodes("train@ner-decoder") == 1


def test_no_stage_is_stale_for_what_it_asks():
    stages = read_yaml(ROOT / "dvc.yaml")["stages"]
    for verb, stage in stages.items():
        block = stage.get("do", stage)
        assert not [key for key in block.get("params", []) if key.startswith("resources")], verb
        assert verb == "check" or "params.yaml" not in block["deps"], verb


def test_processes_are_those_of_the_training():
    found = load(ROOT / "params.yaml")
    assert found.processes("train@ner-encoder") == found.processes("compare@ner") == 1
    content = json.loads(json.dumps(read_yaml(ROOT / "params.yaml")))
    content["experiments"]["ner-encoder"]["training"]["processes"] = 4
    content["backbones"]["encoder"]["pretraining"]["processes"] = 2
    changed = check(content)
    assert changed.processes("train@ner-encoder") == 4
    assert changed.processes("pretrain@encoder") == 2
    assert changed.processes("evaluate@ner-encoder") == 1
