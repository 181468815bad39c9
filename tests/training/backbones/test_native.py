"""Native architectures as the backbone of a tagger: same results and folders as transformers."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModel

from tests import checkpoints, tiny
from tests.models.equal import SINGLE, difference
from wxb.core.compatibility import positions
from wxb.tasks.ner.models.tagger import Tagger
from wxb.tasks.ner.params import Head, TaggingModel
from wxb.training.backbones.generator import Generator, language_model
from wxb.training.backbones.native import Native
from wxb.training.backbones.tuning import parameter_count
from wxb.training.backbones.weights import load_backbone

IDS = torch.tensor([[1, 7, 9, 3, 0, 0], [1, 30, 31, 32, 33, 2]])
MASK = torch.tensor([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]])
HEAD = TaggingModel(head=Head(projection=12, dropout=0.0))


@pytest.fixture(params=["bert", "llama"])
def folder(request, tmp_path):
    return getattr(tiny, request.param)(tmp_path / "backbone", vocab_size=40)


def test_saved_folders_load_in_wxb_and_transformers(folder, tmp_path):
    torch.manual_seed(3)
    model = Tagger(load_backbone(folder, native=True), 3, HEAD).eval()
    (tmp_path / "model").mkdir()
    model.save_pretrained(tmp_path / "model")
    options = {"add_pooling_layer": False} if model.backbone.config.model_type == "bert" else {}
    theirs, info = AutoModel.from_pretrained(
        tmp_path / "model", output_loading_info=True, **options
    )
    assert not {*info["missing_keys"], *info["unexpected_keys"]}
    assert parameter_count(theirs) == parameter_count(model.backbone)
    loaded = Tagger.from_pretrained(tmp_path / "model", tags=3, settings=HEAD)
    assert isinstance(loaded.backbone, Native)
    with torch.no_grad():
        expected = model(IDS, MASK)["tags"]
        torch.testing.assert_close(loaded(IDS, MASK)["tags"], expected, rtol=0, atol=0)
        ours, *others = (
            m(input_ids=IDS, attention_mask=MASK).last_hidden_state[MASK == 1]
            for m in (model.backbone, theirs, load_backbone(folder).eval())
        )
    assert max(difference([hidden], [ours]) for hidden in others) <= SINGLE


@pytest.mark.parametrize("bidirectional", [False, True])
def test_models_of_transformers_are_loaded_as_native(folder, tmp_path, bidirectional):
    torch.manual_seed(3)
    theirs = Tagger(load_backbone(folder, bidirectional=bidirectional), 3, HEAD).eval()
    (tmp_path / "model").mkdir()
    theirs.save_pretrained(tmp_path / "model")
    ours = Tagger.from_pretrained(tmp_path / "model", tags=3, settings=HEAD)
    assert isinstance(ours.backbone, Native)
    with torch.no_grad():
        actual, expected = ours(IDS, MASK), theirs(IDS, MASK)
    for name, logits in expected.items():
        assert difference([actual[name][MASK == 1]], [logits[MASK == 1]]) <= SINGLE


def test_old_names_of_norms_are_read(tmp_path):
    """As in google-bert/bert-base-uncased; transformers saves them as it found them."""
    file = tiny.bert(tmp_path, vocab_size=40) / "model.safetensors"
    expected, weights = Native.from_folder(tmp_path).state_dict(), load_file(file)
    for new, old in (("Norm.weight", "Norm.gamma"), ("Norm.bias", "Norm.beta")):
        weights = {name.replace(new, old): weight for name, weight in weights.items()}
    save_file(weights, file, metadata={"format": "pt"})
    load_backbone(tmp_path).save_pretrained(tmp_path)
    actual = Native.from_folder(tmp_path).state_dict()
    assert all(torch.equal(actual[name], weight) for name, weight in expected.items())


def test_a_head_that_differs_from_shared_embeddings_is_left_to_transformers(tmp_path):
    file = tiny.llama(tmp_path, vocab_size=40, tie_word_embeddings=True) / "model.safetensors"
    weights = load_file(file)
    for change in (0, 1):
        head = weights["model.embed_tokens.weight"] + change
        save_file({**weights, "lm_head.weight": head}, file, metadata={"format": "pt"})
        assert (Native.from_folder(tmp_path, generative=True) is None) == bool(change)
    extended = language_model(tmp_path, vocabulary=48)  # new tokens do not share it again
    assert torch.equal(extended.get_output_embeddings().weight[:40], head)


def test_unsupported_folders_are_not_loaded(folder, tmp_path):
    assert Native.from_folder(tmp_path) is None  # an adapter has no config.json
    config = folder / "config.json"
    content = json.loads(config.read_text())
    config.write_text(json.dumps(content | {"model_type": "unknown"}))
    assert Native.from_folder(folder) is None


@pytest.mark.parametrize("base", ["llama", "gpt2"])
def test_language_models_are_loaded_as_native(tmp_path, base):
    checkpoints.save(base, tmp_path, tie_word_embeddings=True)
    theirs = Generator(language_model(tmp_path, vocabulary=400)).eval()
    theirs.save_pretrained(tmp_path)
    ours = Generator.from_pretrained(tmp_path, vocabulary=400)
    assert isinstance(ours.backbone, Native)
    config = ours.backbone.config
    assert positions(config) == positions(theirs.backbone.config) == 128


def test_rope_of_older_versions_is_left_to_transformers(tmp_path):
    old = tiny.llama(tmp_path, vocab_size=40)
    config = json.loads((old / "config.json").read_text())
    del config["rope_parameters"]
    (old / "config.json").write_text(json.dumps({**config, "rope_theta": 500_000.0}))
    assert Native.from_folder(old) is None
    assert load_backbone(old).config.rope_parameters["rope_theta"] == 500_000
