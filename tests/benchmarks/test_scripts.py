"""Each script of benchmarks/ runs at sizes too small for its figures to mean anything."""

import json
import sys

import numpy as np
import pytest
import soundfile

from tests.benchmarks.script import FOLDER, script
from tests.corpora.records import to_letters
from tests.project_copy import ROOT

pytestmark = pytest.mark.slow
RATE = 8000  # Hz
ARGUMENTS = {
    "errata_models": "",
    "errata": "ner-encoder ner-generative-neftune --records 20 --train-records 16 --seeds 1",
    "intervals": "--times 2",
    "reproduction": "--times 20",
    "spacy_ner": "--corpus pii --study ner --epochs 1",
    "masked_names": "test.txt",
    "recipes": "ner ner",
    "mutations": ". --only align-first-token",
    "own_data": "titles-100-tfidf --data . --tests 20",
    "direction": "demo-40 --tests 20",
    "classification/texts": "news --class Fake*=f --class True*=t --fields title --size 40"
    " --system tfidf",
    "speed/speed": "--turns 1 --records 20 --stage-records 100 --empty-stages 2",
    "speed/tokenize_align": "--records 100 --sizes 100",
    "translation/learning_rates": "0.01 --epochs 1 --processes 1",
    "translation/prompted": "",
    "chat/losses": "chat-full",
    "speech/digits": "--data digits",
}
# Stages that a script needs beyond those of the small project, by its profile.
STAGES = {
    "translation": ["--glob", "align@translation-*", "train@translation-gpt2"],
    "chat": ["train@chat-full"],
}


@pytest.fixture(scope="module")
def project(built_project, tmp_path_factory):
    """A copy of the small project, with sets of records."""
    project = built_project.copy(tmp_path_factory.mktemp("benchmarks") / "project")
    news, digits = project.folder / "news", project.folder / "digits"
    (digits / "wavs").mkdir(parents=True)
    news.mkdir()
    for name in ("Fake", "True"):
        lines = (f"{name} {to_letters(number)} of the day" for number in range(60))
        (news / f"{name}.csv").write_text("\n".join(["title", *lines]))
    (project.folder / "test.txt").write_text("Ann B-PER\nLee I-PER\nsleeps O\n\n" * 20)
    rows = [(f"{i:02}", ("one", "two")[i % 2], ("ann", "bob")[i // 12]) for i in range(24)]
    for file, field, column in (("metadata", "speaker", 2), ("transcripts", "sentence", 1)):
        lines = [f"ID,{field}", *(f"{row[0]},{row[column]}" for row in rows)]
        (digits / f"{file}.csv").write_text("\n".join(lines))
    times = np.arange(RATE // 2) / RATE
    for index, (name, *_) in enumerate(rows):
        soundfile.write(digits / f"wavs/{name}.wav", np.sin(times * 900 * (index % 7 + 1)), RATE)
    return project


def shrink(params):
    """Shorten the trainings of a profile."""
    for experiment in params["experiments"].values():
        experiment["training"] |= {"epochs": 1} if "epochs" in experiment["training"] else {}
    for name in params["corpora"].keys() & {"chat", "phrases"}:
        sizes = params["corpora"][name]["generate"]
        sizes.update({key: 400 for key in sizes if key != "languages"})
    for backbone in params["backbones"].values():
        if "pretraining" in backbone:
            backbone["pretraining"].update(steps=10)


def shorten(name, module, project, patch, folder):
    """Shorten what no option of a script does."""
    if name == "direction":
        corpus = {**module.SETS["demo"].corpus, "path": str(project.folder / "data/raw/pii")}
        patch.setitem(module.SETS, "demo", module.SETS["demo"]._replace(corpus=corpus, sizes=(40,)))
        text = module.TEMPLATE.read_text().replace("epochs: 20,", "epochs: 1,")
        text = text.replace("[20000, 6, 20]", "[1, 1, 1]").replace("steps: 300", "steps: 2")
        (folder / "template.yaml").write_text(text)
        patch.setattr(module, "TEMPLATE", folder / "template.yaml")
    if name == "speech/digits":
        for key, value in {"SYNTHETIC": 40, "VALID": 10, "COPIES": 1, "KEPT": 10}.items():
            patch.setattr(module, key, value)
        for settings in (module.PRETRAINING, module.FINE_TUNING):
            patch.setitem(settings["training"], "epochs", 1)


def test_every_script_is_run():
    scripts = [path for path in FOLDER.rglob("*.py") if "__main__" in path.read_text()]
    names = {str(path.relative_to(FOLDER).with_suffix("")) for path in scripts}
    assert names == {*ARGUMENTS, "speed/items"}  # which speed/tokenize_align runs


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_script_runs(project, tmp_path, monkeypatch, name):
    monkeypatch.chdir(ROOT if name == "reproduction" else project.folder)
    profile, output = name.partition("/")[0], tmp_path / "table.json"
    if profile in STAGES:
        project.run("wxb", "params", profile)
        project.edit(shrink)
        project.run("dvc", "repro", *STAGES[profile])
    module = script(name)
    shorten(name, module, project, monkeypatch, tmp_path)
    arguments = [*ARGUMENTS[name].split(), "--output", str(output)]
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    if name == "mutations":
        module.main()
        assert json.loads(output.read_text()) == {"align-first-token": "killed"}
    else:
        module.app(arguments, standalone_mode=False)
        assert json.loads(output.read_text())["rows"]
        assert "not measured" not in output.read_text()
