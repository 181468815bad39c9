"""The benchmarks of translation: valid recipes, and a peer that is the same model."""

import torch

from tests.benchmarks.script import script
from tests.tasks.translation.translators import random_model, tokenizer
from wxb.core.params import read_yaml
from wxb.tasks.translation.predictor import special_ids

pairs, plain = script("translation/pairs"), script("translation/plain")


def test_the_recipes_are_blocks_of_one_study(tmp_path):
    params = pairs.project(read_yaml(pairs.RECIPES), tmp_path)
    assert params.studies[pairs.STUDY].experiments == [*params.experiments]
    assert {e.model.kind for e in params.experiments.values()} == {
        "recurrent",
        "transformer",
        "gpt2",
    }


def test_the_plain_transformer_has_the_loss_of_ours():
    ours = random_model("transformer").model
    theirs = plain.PlainTransformer(ours).double().eval()
    theirs.transformer.load_state_dict(ours.transformer.state_dict(), strict=True)
    theirs.source.load_state_dict(ours.source_embedding.state_dict())
    theirs.target.load_state_dict(ours.target_embedding.state_dict())
    ids = torch.tensor([[5, 6, 7], [8, 9, special_ids(tokenizer())["pad"]]])
    mask = torch.tensor([[1, 1, 1], [1, 1, 0]])
    labels = torch.tensor([[9, 8, 2], [7, 2, 0]])
    assert torch.allclose(theirs.loss(ids, mask, labels), ours.loss(ids, mask, labels))
