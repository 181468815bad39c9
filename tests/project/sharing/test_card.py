"""Model cards have the scores of the reports; a shared folder can be used alone."""

import errno
import json
import os
import re
import shutil
from pathlib import Path

import pytest
from huggingface_hub import ModelCard

from tests.ner_project import create_project
from wxb import tasks
from wxb.core import params
from wxb.core.errors import WxbError
from wxb.project import trained
from wxb.project.sharing import card
from wxb.tasks import cards


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return create_project(tmp_path_factory.mktemp("project"))


@pytest.fixture
def scores_and_card(project, monkeypatch):
    """The metrics and the card of the trained experiment."""
    monkeypatch.chdir(project)
    scores = json.loads((project / "reports/metrics/ner/ner-encoder.json").read_text())
    return scores, card.card(params.load(), "ner-encoder")


def examples(text):
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def test_scores_and_data_are_those_of_the_reports(scores_and_card):
    scores, text = scores_and_card
    interval = "{f1:.3f} ({f1_low:.3f}–{f1_high:.3f})".format(**scores)
    assert f"| {interval} | {scores['precision']:.3f} | {scores['recall']:.3f} |" in text
    assert "16 labelled records to train on, 8 to choose" in text
    assert "On 24 test records with 24 spans" in text
    assert "\n\n\n" not in text
    data = ModelCard(text).data
    results = {result.metric_type: result.metric_value for result in data.eval_results}
    assert results == {key: round(scores[key], 4) for key in ("f1", "precision", "recall")}
    assert (data.pipeline_tag, data.library_name) == ("token-classification", "transformers")


def test_a_threshold_is_a_plain_number(project, scores_and_card):
    path = project / "models/ner-encoder/wxb.json"
    before = path.read_text()
    path.write_text(json.dumps({**json.loads(before), "threshold": 0.6499999999999999}))
    try:
        assert "spans with a score below 0.65." in card.card(params.load(), "ner-encoder")
    finally:
        path.write_text(before)


def test_a_card_of_several_seeds_has_means_and_the_first_model(
    project, scores_and_card, tmp_path, monkeypatch
):
    monkeypatch.chdir(project)
    one = params.load()
    study = one.studies["ner"].model_copy(update={"seed": [4, 5]})
    several = one.model_copy(update={"studies": {"ner": study}})
    assert "- One run with seed 1; the interval does not cover another seed." in scores_and_card[1]
    text = card.card(several, "ner-encoder")
    assert "- The scores are means over the seeds 4, 5, which the interval covers too;" in text
    assert "\n\n\n" not in text
    other = project / "models/ner-encoder/seed-5"
    other.mkdir()
    try:
        card.share(several, "ner-encoder", tmp_path / "shared")
    finally:
        other.rmdir()
    assert not (tmp_path / "shared/seed-5").exists()
    assert (tmp_path / "shared/wxb.json").exists()


def test_the_first_example_runs(scores_and_card):
    exec(examples(scores_and_card[1])[0], {})


def test_a_shared_folder_works_elsewhere(project, scores_and_card, tmp_path, monkeypatch):
    card.share(params.load(), "ner-encoder", tmp_path / "shared")
    with pytest.raises(WxbError, match="already exists"):
        card.share(params.load(), "ner-encoder", tmp_path / "shared")
    (tmp_path / "new").touch()
    files = [path for path in (tmp_path / "shared").rglob("*") if path.is_file()]
    assert {path.stat().st_mode for path in files} == {(tmp_path / "new").stat().st_mode}
    readme = (tmp_path / "shared/README.md").read_text(encoding="utf-8")
    assert str(tmp_path / "shared") in examples(readme)[1]
    text = ["Yesterday Ann Lee said hello."]
    expected = trained.load("ner-encoder").predict(text)
    monkeypatch.chdir(tmp_path)
    assert trained.load(tmp_path / "shared").predict(text) == expected != [[]]


def fail(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("function", ["copyfile", "copytree"])
def test_a_full_disk_is_an_error_and_leaves_nothing(
    scores_and_card, tmp_path, monkeypatch, function
):
    monkeypatch.setattr(shutil, function, fail)
    with pytest.raises(WxbError, match=r"shared: cannot copy .*No space left.*nothing was written"):
        card.share(params.load(), "ner-encoder", tmp_path / "shared")
    assert list(tmp_path.iterdir()) == []


def test_an_impossible_folder_is_an_error(scores_and_card, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(WxbError, match="cannot copy the model"):
        card.share(params.load(), "ner-encoder", tmp_path / "file/shared")


def test_missing_experiments_and_metrics_are_errors(
    project, scores_and_card, tmp_path, monkeypatch
):
    with pytest.raises(WxbError, match="did you mean 'ner-encoder'"):
        card.card(params.load(), "ner-encodr")
    shutil.copytree(project, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    shutil.rmtree("reports/metrics")
    with pytest.raises(WxbError, match="run `dvc repro evaluate@ner-encoder` first"):
        card.card(params.load(), "ner-encoder")


@pytest.mark.parametrize("task", ["chat", "speech", "translation", ""])
def test_every_task_has_cards(scores_and_card, monkeypatch, task):
    own = tasks.get(task).card if task else cards.Card()
    monkeypatch.setattr(tasks.Task, "card", own, raising=False)
    monkeypatch.setattr(type(own), "SCORES", ("f1",))
    text = card.card(params.load(), "ner-encoder")
    scores = scores_and_card[0]
    assert "\n\n\n" not in text
    assert "| F1 | {f1:.3f} | {f1_low:.3f}–{f1_high:.3f} |".format(**scores) in text
    assert ModelCard(text).data.pipeline_tag


def test_further_test_sets_are_named(project, scores_and_card, tmp_path, monkeypatch):
    monkeypatch.chdir(shutil.copytree(project, tmp_path / "copy"))
    monkeypatch.setattr(tasks.Task, "card", cards.Card(), raising=False)
    monkeypatch.setattr(cards.Card, "SCORES", ("f1",))
    profile = Path("data/clean/pii/profile.json")
    content = json.loads(profile.read_text())
    content["splits"]["situations"] = content["splits"]["test"]
    profile.write_text(json.dumps(content))
    further = {"situations_f1": 0.5, "situations_f1_low": 0.4, "situations_f1_high": 0.6}
    Path("reports/metrics/ner/ner-encoder.json").write_text(
        json.dumps({**scores_and_card[0], **further})
    )
    assert "| situations: F1 | 0.500 | 0.400–0.600 |" in card.card(params.load(), "ner-encoder")


def test_a_card_runs_no_code_of_the_model(project, scores_and_card, tmp_path, monkeypatch):
    copy = shutil.copytree(project, tmp_path / "copy")
    monkeypatch.chdir(copy)
    path = copy / "models/ner-encoder/config.json"
    settings = json.loads(path.read_text()) | {"auto_map": {"AutoModel": "code.Model"}}
    path.write_text(json.dumps({**settings, "model_type": "unheard-of"}))
    code = copy / "models/ner-encoder/code.py"
    code.write_text(f"open({str(tmp_path / 'trace')!r}, 'w')")
    card.share(params.load(), "ner-encoder", tmp_path / "shared")
    with pytest.raises(WxbError, match=r"shared/config\.json: found `auto_map`"):
        trained.load(tmp_path / "shared")
    assert not (tmp_path / "trace").exists()
