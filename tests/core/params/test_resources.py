"""Resources by verb and by stage; they make no stage stale."""

import pytest

from tests import demo
from tests.project_copy import ROOT
from wxb.core.params import ParamsError, check, read_yaml
from wxb.core.params.resources import SECTIONS


def params(**resources):
    return check(demo.content() | {"resources": resources})


def test_a_stage_has_the_resources_of_its_verb_and_its_own():
    verb = {"mem_mb": 4000, "runtime": 30, "slurm_partition": "gpu"}
    own = {"mem_mb": 9000, "gpu": 1}
    checked = params(**{"train": verb, "train@ner-generative": own})
    assert checked.snakemake_resources("train@ner-encoder") == verb
    assert checked.snakemake_resources("train@ner-generative") == verb | own
    assert checked.snakemake_resources("evaluate@ner-encoder") == {}


@pytest.mark.parametrize(
    ("resources", "message"),
    [
        ({"trian": {}}, r"resources.trian: unknown verb 'trian'.*did you mean 'train'"),
        ({"train@ner-encodr": {}}, r"experiments has no 'ner-encodr'.*'ner-encoder'"),
        ({"train": {"memory": 1}}, r"resources.train.memory: unknown key"),
        ({"train": {"runtime": 0}}, r"resources.train.runtime: found 0"),
    ],
)
def test_errors_are_reported(resources, message):
    with pytest.raises(ParamsError, match=message):
        params(**resources)


def test_no_stage_depends_on_resources():
    stages = read_yaml(ROOT / "dvc.yaml")["stages"]
    for verb, stage in stages.items():
        block = stage.get("do", stage)
        assert not [key for key in block.get("params", []) if key.startswith("resources")], verb
        assert verb == "check" or "params.yaml" not in block["deps"], verb
    sections = {v: s["foreach"].strip("${}") for v, s in stages.items() if "foreach" in s}
    assert sections == SECTIONS


def test_processes_are_those_of_the_training():
    checked = demo.params()
    assert checked.processes("train@ner-encoder") == checked.processes("compare@ner") == 1
    content = demo.content()
    content["experiments"]["ner-encoder"]["training"]["processes"] = 4
    content["backbones"]["encoder"]["pretraining"]["processes"] = 2
    changed = check(content)
    assert changed.processes("train@ner-encoder") == 4
    assert changed.processes("pretrain@encoder") == 2
    assert changed.processes("evaluate@ner-encoder") == 1
