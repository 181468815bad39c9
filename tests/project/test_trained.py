"""A really trained model: found by its name, loaded, and masking at the command line."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import wxb
from tests.trained import SENTENCES
from tests.trained import project as trained_project
from wxb.core.errors import WxbError
from wxb.core.params import check, read_yaml
from wxb.project import trained
from wxb.tasks.ner.record.spans import Span

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return trained_project(tmp_path_factory.mktemp("project"))


def command(folder, *arguments, given=b""):
    return subprocess.run(
        [sys.executable, "-c", "from wxb.cli.app import main; main()", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        input=given,
        capture_output=True,
        check=False,
    )


def test_a_trained_experiment_masks_and_the_mapping_undoes_it(project):
    content = "".join(f"{json.dumps({'id': 1, 'text': text})}\n" for text, _ in SENTENCES).encode()
    path = project / "in.jsonl"
    path.write_bytes(content)
    options = ("--mapping", "m.json", "--verify", "--report", "report.json")
    told = command(project, "mask", "-e", "ner-encoder", "in.jsonl", *options)
    assert (told.returncode, told.stderr) == (0, b"")
    numbers = {name: f"<NAME_{number}>" for number, (_, name) in enumerate(SENTENCES, 1)}
    assert told.stdout.decode() == "".join(
        json.dumps({"id": 1, "text": text.replace(name, numbers[name])}) + "\n"
        for text, name in SENTENCES
    )
    report = json.loads((project / "report.json").read_text())
    assert (report["masked"], report["left"]) == ({"NAME": 24}, {})
    undone = command(
        project, "unmask", "--mapping", "m.json", "--format", "jsonl", given=told.stdout
    )
    assert undone.stdout == content
    again = command(project, "mask", "-e", "models/ner-encoder", "in.jsonl", "--mapping", "m.json")
    assert again.stdout == told.stdout


def test_it_is_found_by_name_from_anywhere_in_the_project(project, monkeypatch):
    (project / "deep/er").mkdir(parents=True)
    monkeypatch.chdir(project / "deep/er")
    assert trained.find("ner-encoder") == project / "models/ner-encoder"
    monkeypatch.chdir(project)
    assert trained.load("ner-encoder").types == ["NAME"]


def test_a_name_brings_its_settings_of_prediction(project, monkeypatch):
    params = read_yaml(project / "params.yaml")
    params["experiments"]["ner-encoder"]["prediction"] = {"batch_size": 17}
    with monkeypatch.context() as here:
        here.chdir(project)
        here.setattr(trained, "load_params", lambda path: check(params))
        assert trained.load("ner-encoder").prediction.batch_size == 17
        assert trained.load("ner-encoder", batch_size="5").prediction.batch_size == 5
        assert trained.load(Path("models/ner-encoder")).prediction.batch_size == 32


def test_what_is_wrong_with_a_name_is_told(project, monkeypatch, tmp_path):
    monkeypatch.chdir(project)
    with pytest.raises(WxbError, match="did you mean 'ner-encoder'"):
        trained.load("ner-encodr")
    with pytest.raises(WxbError, match=r"not trained yet.*`dvc repro train@ner-decoder` first"):
        trained.load("ner-decoder")
    with pytest.raises(WxbError, match=r"with wxb\.json in it \(it has none\)"):
        trained.load(project / "bert")
    with pytest.raises(WxbError, match="there is no such folder"):
        trained.load("models/none")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WxbError, match="so experiments have no names"):
        trained.load("ner-encoder")


@pytest.mark.parametrize("broken", ["wxb.json", "head.safetensors", "tokenizer.json"])
def test_a_broken_model_is_told(project, tmp_path, broken):
    shutil.copytree(project / "models/ner-encoder", tmp_path / "m")
    (tmp_path / "m" / broken).write_text("{}")
    with pytest.raises(WxbError, match="expected a model that its train stage wrote"):
        trained.load(tmp_path / "m")


def test_a_model_of_a_task_that_is_not_here_is_told(project, tmp_path):
    shutil.copytree(project / "models/ner-encoder", tmp_path / "m")
    settings = json.loads((tmp_path / "m/wxb.json").read_text())
    (tmp_path / "m/wxb.json").write_text(json.dumps({**settings, "task": "os.path"}))
    with pytest.raises(WxbError, match=r"No module named .wxb\.tasks\.os"):
        trained.load(tmp_path / "m")


def test_looking_for_a_model_is_quick(project):
    """Nothing that takes long is imported before it is known that there is a model."""
    code = (
        "import sys; from wxb.project.trained import find; find('ner-encoder')\n"
        "assert not {'torch', 'transformers'} & {*sys.modules}"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code], cwd=project, env=environment, check=True)


def test_load_is_part_of_the_package(project, monkeypatch):
    monkeypatch.chdir(project)
    assert wxb.load is trained.load
    assert wxb.load("ner-encoder").predict(["Yesterday Ann Lee said hello."])[0][0].span == (
        Span(10, 17, "NAME")
    )
    with pytest.raises(TypeError, match=r"found one input \(str\); expected a list of them"):
        wxb.load("ner-encoder").predict("Yesterday Ann Lee said hello.")
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        wxb.lode  # noqa: B018


def test_the_package_alone_is_light():
    code = "import sys, wxb; assert not {'torch', 'transformers', 'pydantic'} & {*sys.modules}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
