import pytest
import torch

import wxb
from tests import talking
from tests.talking import ANSWERS
from wxb.errors import WxbError
from wxb.project.merging import merge


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
