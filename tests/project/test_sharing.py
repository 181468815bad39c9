"""Model cards have the scores of the reports; a shared folder can be used alone."""

import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from huggingface_hub import ModelCard
from safetensors.torch import load_file, save_file

from tests import chat_models
from wxb import tasks
from wxb.core import params
from wxb.core.errors import WxbError
from wxb.core.files import read_json, write_json
from wxb.project import sharing, status, trained
from wxb.tasks.chat.params import Prediction


@pytest.fixture
def project(ner_project, tmp_path, monkeypatch):
    """A copy of the project, as the working folder."""
    monkeypatch.chdir(shutil.copytree(ner_project, tmp_path / "project"))
    return Path.cwd()


SECRET = [{"role": "user", "content": "Who is ill?"}]


def test_scores_and_data_are_those_of_the_reports(project):
    text = sharing.card(params.load(), "ner-encoder")
    scores = read_json(Path("reports/metrics/ner/ner-encoder.json"))
    interval = "{f1_low:.3f}–{f1_high:.3f}".format(**scores)
    row = re.search(r"\| test \| (\d+) \| F1 \| (\S+) \| (\S*) +\|", text)
    assert row.groups() == ("24", f"{scores['f1']:.3f}", interval)
    assert "16 labelled records to train on, 8 for validation" in text
    assert "\n\n\n" not in text
    data = ModelCard(text).data
    results = {result.metric_type: result.metric_value for result in data.eval_results}
    assert {"f1", "precision", "recall"} <= results.keys()
    assert all(value == round(scores[key], 4) for key, value in results.items())
    assert (data.pipeline_tag, data.library_name) == ("token-classification", "transformers")
    exec(re.search(r"```python\n(.*?)```", text, re.DOTALL)[1], {})
    (project / "models/ner-encoder/config.json").unlink()  # a conditional random field has none
    assert "transformers" not in sharing.card(params.load(), "ner-encoder")


def test_several_seeds_share_the_first_model(project, tmp_path):
    one = params.load()
    study = one.studies["ner"].model_copy(update={"seed": [4, 5]})
    (project / "models/ner-encoder/seed-5").mkdir()
    several = one.model_copy(update={"studies": {"ner": study}})
    sharing.share(several, "ner-encoder", tmp_path / "shared")
    assert "seeds 4, 5" in (tmp_path / "shared/README.md").read_text(encoding="utf-8")
    assert not (tmp_path / "shared/seed-5").exists()


def test_a_model_is_not_shared_if_it_was_not_scored_or_where_it_would_be_cleaned(
    project, tmp_path, monkeypatch
):
    for folder in ("models/shared", "reports/a/b", "data/c"):
        with pytest.raises(WxbError, match="name a folder outside"):
            sharing.share(params.load(), "ner-encoder", Path(folder))
    stale = status.Staleness(
        {"train@ner-encoder": [status.Change("epochs", "1 -> 2")]},
        {"evaluate@ner-encoder": ["train@ner-encoder"]},
    )
    monkeypatch.setattr("wxb.project.status.staleness", lambda: stale)
    with pytest.raises(WxbError, match="train@ner-encoder is stale; run `dvc repro evaluate@ner-"):
        sharing.share(params.load(), "ner-encoder", tmp_path / "shared")
    assert not (tmp_path / "shared").exists()


def test_a_shared_folder_works_elsewhere(project, tmp_path, monkeypatch):
    sharing.share(params.load(), "ner-encoder", tmp_path / "shared")
    with pytest.raises(WxbError, match="already exists"):
        sharing.share(params.load(), "ner-encoder", tmp_path / "shared")
    (tmp_path / "new").touch()
    files = [path for path in (tmp_path / "shared").rglob("*") if path.is_file()]
    assert {path.stat().st_mode for path in files} == {(tmp_path / "new").stat().st_mode}
    text = ["Yesterday Ann Lee said hello."]
    expected = trained.load("ner-encoder").predict(text)
    monkeypatch.chdir(tmp_path)
    assert trained.load(tmp_path / "shared").predict(text) == expected != [[]]


def test_a_shared_adapter_has_its_base_and_refuses_another(project, tmp_path, monkeypatch):
    text = ["Yesterday Ann Lee said hello."]
    base = project / "models/base"
    chat_models.backbone(base)
    adapter = chat_models.train_model(project / "models/chat-lora", chat_models.LORA)
    write_json(adapter / "wxb.json", read_json(adapter / "wxb.json") | {"examples": [SECRET]})
    expected = trained.load(adapter, max_new_tokens=9).predict(text)
    write_json(base / "wxb.json", {"examples": [SECRET]})  # as of an experiment that goes on
    monkeypatch.setattr(sharing, "card", lambda *_: "card")
    content = params.load()
    content.experiments["chat-lora"] = SimpleNamespace(prediction=Prediction(max_new_tokens=9))
    sharing.share(content, "chat-lora", tmp_path / "shared")
    assert "examples" not in read_json(tmp_path / "shared/wxb.json")
    assert read_json(tmp_path / "shared/base/wxb.json") == {}
    empty = tmp_path / "empty"
    empty.mkdir()
    (tmp_path / "shared").rename(empty / "shared")
    weights = load_file(base / "model.safetensors")
    save_file({**weights, "model.norm.weight": weights["model.norm.weight"] + 1}, base / "x")
    (base / "x").replace(base / "model.safetensors")
    with pytest.raises(WxbError, match=r"found other weights in its base model .*base than"):
        trained.load(adapter)
    shutil.rmtree(base)
    monkeypatch.chdir(empty)
    assert trained.load("shared").predict(text) == expected


@pytest.mark.parametrize("task", ["chat", "classification", "speech", "translation"])
def test_every_task_has_cards(project, monkeypatch, task):
    own = trained.predictor_class("ner-encoder")
    other = tasks.get(task).method("baseline").PREDICTOR
    for name in ("hub_task", "example"):
        monkeypatch.setattr(own, name, getattr(other, name))
    text = sharing.card(params.load(), "ner-encoder")
    assert ModelCard(text).data.pipeline_tag == other.hub_task
    assert all(t in text.partition("## Use")[2] for t in (other.example, "transformers"))
    json.loads(other.example)


def test_a_merged_model_answers_like_the_adapter(tmp_path):
    adapter = chat_models.train_model(tmp_path / "adapter", chat_models.LORA)
    write_json(adapter / "wxb.json", read_json(adapter / "wxb.json") | {"examples": [SECRET]})
    (adapter / "README.md").write_text("The card of an adapter.")
    sharing.merge(adapter, tmp_path / "merged")
    assert not (tmp_path / "merged/README.md").exists()
    assert "examples" not in read_json(tmp_path / "merged/wxb.json")
    original, merged = trained.load(adapter), trained.load(tmp_path / "merged")
    assert not (tmp_path / "merged/adapter_config.json").exists()
    assert merged.predict([*chat_models.ANSWERS]) == original.predict([*chat_models.ANSWERS])
    with pytest.raises(WxbError, match="new folder"):
        sharing.merge(adapter, tmp_path)
    with pytest.raises(WxbError, match="expected an adapter"):
        sharing.merge(tmp_path / "merged", tmp_path / "again")
