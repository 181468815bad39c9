"""The benchmark of losses of chat models."""

from types import SimpleNamespace

import pytest

from tests import chat_models
from tests.benchmarks.script import script
from wxb.core.files import read_json
from wxb.tasks.chat.predictor import Replier

losses = script("chat/losses")


@pytest.fixture(scope="module")
def replier(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "chat"
    chat_models.train_model(folder)
    return Replier.load(folder)


def test_a_model_has_a_loss_and_a_score_on_each_split(tmp_path, monkeypatch, replier):
    params = SimpleNamespace(block=lambda *_: SimpleNamespace(corpus="chat"))
    monkeypatch.setattr(losses, "load", lambda: params)
    monkeypatch.setattr(losses.trained, "load", lambda name: replier)
    monkeypatch.setattr(losses.clean, "read_labelled", lambda *_: chat_models.RECORDS)
    output = tmp_path / "losses.json"
    losses.main(["chat"], output=output)
    rows = read_json(output)["rows"]
    assert [row["split"] for row in rows] == ["train", "valid", "test"]
    assert all(row["loss of all tokens"] > row["loss of answers"] > 0 for row in rows)
    assert all(0 <= row["exact match (95% interval)"][0] <= 1 for row in rows)
