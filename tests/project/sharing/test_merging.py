import pytest
import torch

import wxb
from tests import chat_models, tiny
from tests.chat_models import ANSWERS
from wxb.core.errors import WxbError
from wxb.core.params.experiments import Tuning
from wxb.project.sharing.merging import merge
from wxb.tasks.ner.params import Head
from wxb.tasks.ner.tagging.model import Tagger
from wxb.training.backbones import tuning


@pytest.fixture(scope="module")
def adapter(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return chat_models.train_model(folder / "adapter", chat_models.LORA)


def test_a_merged_model_answers_like_the_adapter(adapter, tmp_path):
    merge(adapter, tmp_path / "merged")
    original, merged = wxb.load(adapter), wxb.load(tmp_path / "merged")
    assert not (tmp_path / "alone/adapter_config.json").exists()
    ids = torch.tensor([[1, 40, 41, 42]])
    with torch.inference_mode():
        expected, actual = (p.model.backbone(ids).logits for p in (original, merged))
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)
    assert merged.predict([*ANSWERS]) == original.predict([*ANSWERS])


def test_an_existing_folder_is_not_overwritten(adapter, tmp_path):
    with pytest.raises(WxbError, match="new folder"):
        merge(adapter, tmp_path)


def test_a_full_model_is_an_error(adapter, tmp_path):
    merge(adapter, tmp_path / "merged")
    with pytest.raises(WxbError, match="expected an adapter"):
        merge(tmp_path / "merged", tmp_path / "again")


@pytest.mark.parametrize(
    ("make", "targets", "four_bit"),
    [(tiny.llama, ["q_proj", "v_proj"], False), (tiny.bert, ["query", "value"], True)],
)
def test_a_merged_model_keeps_its_head(make, targets, four_bit, tmp_path):
    settings = Tuning(lora={"r": 4, "alpha": 8, "target_modules": targets}, four_bit=four_bit)
    shape = {"tags": 5, "settings": Head(projection=16, dropout=0.1)}
    model = Tagger.from_backbone(make(tmp_path / "base", vocab_size=99), settings, **shape).eval()
    for name, weights in model.named_parameters():
        if "lora_B" in name:  # zeros before training
            torch.nn.init.normal_(weights, std=0.1)
    model.save_pretrained(tmp_path / "adapter")
    loaded = Tagger.from_pretrained(tmp_path / "adapter", four_bit=four_bit, **shape)
    ids = torch.arange(3, 30)[None]
    with torch.inference_mode():
        expected = loaded(ids, torch.ones_like(ids))
        loaded.backbone = tuning.merge_adapter(loaded.backbone, tmp_path / "adapter")
        loaded.save_pretrained(tmp_path / "full")
        actual = Tagger.from_pretrained(tmp_path / "full", **shape)(ids, torch.ones_like(ids))
    for name, values in expected.items():
        torch.testing.assert_close(actual[name], values, rtol=1e-4, atol=1e-4)
