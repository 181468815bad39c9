"""Both sides begin with the same seed, and only one of them with weights of ours."""

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForPreTraining, set_seed

from tests.benchmarks.script import script
from tests.project_copy import ROOT
from wxb.core.params import load
from wxb.corpora.text.tokenizers import train
from wxb.training.backbones import weights

initialization = script("initialization")
PARAMS = load(ROOT / "params.yaml")
CLASSES = {"encoder": AutoModelForPreTraining, "decoder": AutoModelForCausalLM}


def flat(model):
    return torch.cat([parameter.flatten() for parameter in model.parameters()])


@pytest.mark.parametrize("name", CLASSES)
def test_the_other_side_has_the_weights_of_transformers(name):
    backbone = PARAMS.backbones[name]
    tokenizer = train(backbone.tokenizer.kind, 400, ["Ann met Bob"] * 9)
    set_seed(1)
    plain = initialization.plain(backbone, tokenizer)
    set_seed(1)
    assert flat(plain).equal(flat(CLASSES[name].from_config(plain.config)))
    set_seed(1)
    assert not flat(plain).equal(flat(weights.initial_model(backbone, tokenizer)))
