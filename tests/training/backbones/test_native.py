"""Our own architectures as the backbone of a tagger: the same figures, and the same folders."""

import json

import pytest
import torch
from transformers import AutoModel

from tests import tiny
from wxb.tasks.ner.params import Head
from wxb.tasks.ner.tagging.model import Tagger
from wxb.training.backbones.native import Native
from wxb.training.backbones.size import parameters
from wxb.training.backbones.weights import load_backbone

IDS = torch.tensor([[1, 7, 9, 3, 0, 0], [1, 30, 31, 32, 33, 2]])
MASK = torch.tensor([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]])
HEAD = Head(projection=12, dropout=0.0)


@pytest.fixture(params=["bert", "llama"])
def folder(request, tmp_path):
    return getattr(tiny, request.param)(tmp_path / "backbone", vocab_size=40)


def targets():
    tags = torch.where(MASK == 1, IDS % 3, -100)
    edges = torch.where(MASK == 1, (IDS % 2).float(), -100.0)
    return {"tags": tags, "starts": edges, "ends": edges}


def tagger(folder, *, native):
    torch.manual_seed(3)
    return Tagger(load_backbone(folder, native=native), 3, HEAD).eval()


def test_loss_and_gradients_are_those_of_transformers(folder):
    losses, gradients = [], []
    for native in (False, True):
        model = tagger(folder, native=native)
        loss = model(IDS, MASK, **targets())["loss"]
        loss.backward()
        losses.append(loss)
        names = {
            name.replace("backbone.backbone.", "backbone."): p.grad
            for name, p in model.named_parameters()
        }
        gradients.append(names)
        assert isinstance(model.backbone, Native) == native
    torch.testing.assert_close(*losses, rtol=1e-5, atol=0)
    theirs, ours = gradients
    assert ours.keys() == theirs.keys()
    for name, gradient in ours.items():
        torch.testing.assert_close(gradient, theirs[name], rtol=1e-4, atol=1e-6, msg=name)


def test_noise_on_the_input_reaches_it(folder):
    model = tagger(folder, native=True).train()
    model.neftune_alpha = 5.0
    torch.manual_seed(0)
    first, second = (model(IDS, MASK)["tags"] for _ in range(2))
    assert not torch.equal(first, second)


def test_it_is_saved_as_transformers_would_and_loads_in_both(folder, tmp_path):
    model = tagger(folder, native=True).eval()
    (tmp_path / "model").mkdir()
    model.save_pretrained(tmp_path / "model")
    options = {"add_pooling_layer": False} if model.backbone.config.model_type == "bert" else {}
    theirs, told = AutoModel.from_pretrained(
        tmp_path / "model", output_loading_info=True, **options
    )
    assert not {*told["missing_keys"], *told["unexpected_keys"]}
    assert parameters(theirs) == parameters(model.backbone)
    again = Tagger.from_pretrained(tmp_path / "model", tags=3, settings=HEAD)
    assert isinstance(again.backbone, Native)
    with torch.no_grad():
        expected = model(IDS, MASK)["tags"]
        torch.testing.assert_close(again(IDS, MASK)["tags"], expected, rtol=0, atol=0)
        hidden = theirs(input_ids=IDS, attention_mask=MASK).last_hidden_state[MASK == 1]
        ours = model.backbone(input_ids=IDS, attention_mask=MASK).last_hidden_state[MASK == 1]
    torch.testing.assert_close(hidden, ours, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_what_transformers_trained_is_run_by_ours(folder, tmp_path, bidirectional):
    torch.manual_seed(3)
    theirs = Tagger(load_backbone(folder, bidirectional=bidirectional), 3, HEAD).eval()
    (tmp_path / "model").mkdir()
    theirs.save_pretrained(tmp_path / "model")
    ours = Tagger.from_pretrained(tmp_path / "model", tags=3, settings=HEAD)
    assert isinstance(ours.backbone, Native)
    with torch.no_grad():
        found, expected = ours(IDS, MASK), theirs(IDS, MASK)
    for name, logits in expected.items():
        torch.testing.assert_close(
            found[name][MASK == 1], logits[MASK == 1], rtol=1e-5, atol=1e-6, msg=name
        )


def test_what_is_not_written_out_is_left_to_transformers(folder, tmp_path):
    assert Native.read(tmp_path) is None  # an adapter has no config.json
    config = folder / "config.json"
    written = config.read_text()
    for architecture in ("gpt2", "bert", "llama"):  # an unknown one, or with other weights
        config.write_text(json.dumps(json.loads(written) | {"model_type": architecture}))
        if architecture not in written:
            assert Native.read(folder) is None
