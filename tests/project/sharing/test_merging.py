import pytest
import torch

import wxb
from tests import talking, tiny
from tests.talking import ANSWERS
from wxb.core.errors import WxbError
from wxb.core.params.experiments import Tuning
from wxb.project.sharing.merging import merge
from wxb.tasks.ner.params import Head
from wxb.tasks.ner.tagging.model import Tagger
from wxb.training.backbones import tuning


@pytest.fixture(scope="module")
def adapter(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return talking.trained(folder / "adapter", talking.LORA)


def test_what_is_merged_answers_as_the_adapter_without_the_backbone(adapter, tmp_path):
    merge(adapter, tmp_path / "alone")
    one, other = wxb.load(adapter), wxb.load(tmp_path / "alone")
    assert not (tmp_path / "alone/adapter_config.json").exists()
    ids = torch.tensor([[1, 40, 41, 42]])
    with torch.inference_mode():
        expected, found = (p.model.backbone(ids).logits for p in (one, other))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert other.predict([*ANSWERS]) == one.predict([*ANSWERS])


def test_a_folder_that_is_there_stays(adapter, tmp_path):
    with pytest.raises(WxbError, match="new folder"):
        merge(adapter, tmp_path)


def test_a_whole_model_is_refused(adapter, tmp_path):
    merge(adapter, tmp_path / "alone")
    with pytest.raises(WxbError, match="expected an adapter"):
        merge(tmp_path / "alone", tmp_path / "again")


@pytest.mark.parametrize(
    ("make", "targets", "four_bit"),
    [(tiny.llama, ["q_proj", "v_proj"], False), (tiny.bert, ["query", "value"], True)],
)
def test_a_model_with_a_head_keeps_it(make, targets, four_bit, tmp_path):
    how = Tuning(lora={"r": 4, "alpha": 8, "target_modules": targets}, four_bit=four_bit)
    shape = {"tags": 5, "settings": Head(projection=16, dropout=0.1)}
    model = Tagger.to_learn(make(tmp_path / "base", vocab_size=99), how, **shape).eval()
    for name, weights in model.named_parameters():
        if "lora_B" in name:  # which is nothing before training
            torch.nn.init.normal_(weights, std=0.1)
    model.save_pretrained(tmp_path / "adapter")
    loaded = Tagger.from_pretrained(tmp_path / "adapter", four_bit=four_bit, **shape)
    ids = torch.arange(3, 30)[None]
    with torch.inference_mode():
        expected = loaded(ids, torch.ones_like(ids))
        loaded.backbone = tuning.merged(loaded.backbone, tmp_path / "adapter")
        loaded.save_pretrained(tmp_path / "whole")
        found = Tagger.from_pretrained(tmp_path / "whole", **shape)(ids, torch.ones_like(ids))
    for name, values in expected.items():
        torch.testing.assert_close(found[name], values, rtol=1e-4, atol=1e-4)
