"""Experiments that go on from the model of another one."""

from copy import deepcopy
from pathlib import Path

import pytest

from wxb.core.params import ParamsError, check, read_yaml
from wxb.reporting import costs

PARAMS = read_yaml(Path(__file__).parents[3] / "params.yaml")
FIRST, SECOND = "ner-encoder", "ner-decoder"


def checked(**changes):
    """The parameters where the second experiment goes on from the first."""
    params = deepcopy(PARAMS)
    blocks = params["experiments"]
    blocks[SECOND] = {**deepcopy(blocks[FIRST]), "backbone": FIRST}
    for name, change in changes.items():
        blocks[name.replace("_", "-")].update(change)
    return check(params)


def test_its_backbone_is_that_of_the_first():
    params = checked()
    assert params.origin(params.experiments[SECOND]) is params.backbones["encoder"]
    assert costs.begun_by(params, FIRST) == "pretrain@encoder"
    assert costs.begun_by(params, SECOND) == f"train@{FIRST}"


LORA = {"lora": {"r": 4, "alpha": 4, "target_modules": ["query"]}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ner_encoder": {"backbone": SECOND}}, "goes on from itself"),
        ({"ner_encoder": {"backbone": FIRST}}, "goes on from itself"),
        ({"ner_encoder": {"tuning": LORA}}, "'ner-encoder' is an adapter"),
        ({"ner_decoder": {"backbone": "ner-generative"}}, "is of ner by generation"),
        ({"ner_decoder": {"architecture": "wxb/models/llama.py"}}, "is of wxb/models/bert.py"),
        ({"ner_decoder": {"backbone": "ner-encodr"}}, "did you mean 'ner-encoder'"),
    ],
)
def test_what_cannot_be_gone_on_from_is_told(changes, message):
    with pytest.raises(ParamsError, match=message):
        checked(**changes)


def test_nothing_else_learns_where_all_is_frozen():
    with pytest.raises(ParamsError, match="nothing learns where `frozen`"):
        checked(ner_encoder={"tuning": {**LORA, "frozen": True}})
