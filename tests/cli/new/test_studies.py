"""The first study of each task: its blocks, epochs, advice and minutes."""

import json
import os
from pathlib import Path

import pytest

from tests.project_copy import ROOT
from wxb.cli.new import studies
from wxb.cli.new.corpus import Trial
from wxb.cli.new.studies import Advice, Epochs, Recipe, Row, Size, training_seconds
from wxb.core.params import PARAMS, check, load
from wxb.core.params.corpora import Corpus
from wxb.project.params_file import add_block, parse, to_yaml
from wxb.tasks import recognition

SHARES = {"test": 0.2, "valid": 0.1}
FILES = {"files": {name: [f"{name}.csv"] for name in ("train", "valid", "test")}}
PROFILE = {"splits": {"train": {"labelled": 500}}}


@pytest.fixture
def params(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return load(ROOT / PARAMS)


@pytest.mark.parametrize("task", recognition.tasks())
@pytest.mark.parametrize("pretrained", [True, False])
def test_a_first_study_of_each_task_is_valid(params, task, pretrained):
    shared = to_yaml({"mine": {"task": task, "path": "mine.csv", "split": SHARES}})
    added = add_block((ROOT / PARAMS).read_text(encoding="utf-8"), "corpora", shared)
    text = studies.add_study(added, "new", "mine", task, None, pretrained=pretrained)
    changed = check(parse(text))
    members = [changed.experiments[name] for name in changed.studies["new"].experiments]
    assert {member.task for member in members} == {task}
    checkpoints = {changed.backbones[member.backbone].checkpoint for member in members}
    assert checkpoints <= ({None, "minilm"} if pretrained else {None})
    rows = studies.recipe_of(task, "new", "mine").rows
    assert all(rows[name].seconds for name in changed.studies["new"].experiments)


def test_few_records_need_many_epochs():
    epochs = Epochs(examples=3000, least=3, most=20)
    assert [epochs.number(n) for n in (0, 100, 300, 1000, 5000)] == [20, 20, 10, 3, 3]


@pytest.mark.parametrize(
    ("split", "splits", "size"),
    [
        (SHARES, {None: 100}, Size(70, 1.4)),
        (FILES, {"train": 60, "valid": 20, "test": 20}, Size(60, 1.2)),
    ],
)
def test_a_size_counts_the_training_records(params, split, splits, size):
    trial = Trial(counts={"hours": 2.0})
    trial.splits.update(splits)
    corpus = Corpus(task="chat", path="x", split=split)
    assert studies.measure("unused", corpus, trial) == size
    assert studies.measure("unused", corpus, None) is None
    Path("data/clean/unused").mkdir(parents=True)
    Path("data/clean/unused/profile.json").write_text(json.dumps(PROFILE))
    assert studies.measure("unused", corpus, None) == Size(500)


def test_advice_is_for_small_corpora_only():
    recipe = Recipe(rows={}, advice=[Advice(count="hours", below=1, text="set a checkpoint")])
    assert [*recipe.advise(Size(10, 0.25))] == ["only 0.25 hours to train on: set a checkpoint"]
    assert not [*recipe.advise(Size(10, 1.0)), *recipe.advise(Size(10))]
    advice = Advice(count="records", below=100, text="name one", only_without_checkpoint=True)
    recipe = Recipe(rows={}, advice=[advice])
    assert [*recipe.advise(Size(10))] == ["only 10 records to train on: name one"]
    assert not [*recipe.advise(Size(10), has_checkpoint=True)]


def write_cost(name, seconds, modified):
    path = Path(f"reports/cost/train/{name}.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"seconds": seconds}))
    os.utime(path, (modified, modified))


def test_without_a_run_the_template_says_the_seconds(params):
    row, epochs = Row(purpose="", seconds=13), params.experiments["ner-encoder"].max_epochs
    assert training_seconds(params, "ner-encoder", row, 2000) == 2 * 13 * epochs
    assert training_seconds(params, "ner-mentions", Row(purpose="", seconds=0.5), 2000) == 1.0
    assert training_seconds(params, "ner-encoder", None, 2000) is None


def test_the_last_run_with_the_same_settings_says_the_seconds(params):
    Path("data/clean/pii").mkdir(parents=True)
    Path("data/clean/pii/profile.json").write_text(json.dumps(PROFILE))
    row, encoder = Row(purpose="", seconds=13), params.experiments["ner-encoder"]
    write_cost("ner-decoder", 300.0, 1)  # other settings
    write_cost("ner-encoder", 30.0, 2)
    assert training_seconds(params, "ner-encoder", row, 1000) == pytest.approx(60.0)
    experiments = {**params.experiments, "again": encoder}
    write_cost("again", 50.0, 3)
    again = params.model_copy(update={"experiments": experiments})
    assert training_seconds(again, "ner-encoder", row, 1000) == pytest.approx(100.0)
