"""Experiments that continue the model of another experiment."""

from copy import deepcopy

import pytest

from tests import demo
from wxb.core.params import ParamsError, check
from wxb.reporting import costs

FIRST, SECOND = "ner-encoder", "ner-decoder"


def check_with(**changes):
    """Checked parameters in which the second experiment continues the first."""
    params = demo.content()
    blocks = params["experiments"]
    blocks[SECOND] = {**deepcopy(blocks[FIRST]), "backbone": FIRST}
    for name, change in changes.items():
        blocks[name.replace("_", "-")].update(change)
    return check(params)


def test_its_backbone_is_that_of_the_first():
    params = check_with()
    assert params.root_backbone(params.experiments[SECOND]) is params.backbones["encoder"]
    assert costs.experiment_stages(params, FIRST)[0] == "pretrain@encoder"
    assert costs.experiment_stages(params, SECOND)[0] == f"train@{FIRST}"


LORA = {"lora": {"r": 4, "alpha": 4, "target_modules": ["query"]}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ner_encoder": {"backbone": SECOND}}, "starts from itself"),
        ({"ner_encoder": {"backbone": FIRST}}, "starts from itself"),
        ({"ner_encoder": {"tuning": LORA}}, "'ner-encoder' does not save the full"),
        ({"ner_decoder": {"backbone": "ner-generative"}}, "has task ner and method generation"),
        ({"ner_decoder": {"encoding": {"max_length": 999, "stride": 8}}}, "backbone 'encoder' has"),
        ({"ner_crf": {"backbone": "ner-crf"}}, "an experiment, of which only the tokenizer is"),
        ({"ner_decoder": {"backbone": "ner-encodr"}}, "did you mean 'ner-encoder'"),
        ({"ner_encoder": {"tuning": {**LORA, "frozen": True}}}, "`frozen` trains no backbone"),
    ],
)
def test_an_invalid_continuation_is_an_error(changes, message):
    with pytest.raises(ParamsError, match=message):
        check_with(**changes)
