"""Trained experiments: found by name, loaded, and used by `wxb mask`."""

import json
import shutil
from pathlib import Path
from unittest.mock import Mock

import pandas as pd
import pytest
import torch

import wxb
from tests.commands import wxb as run
from tests.ner_project import SENTENCES
from wxb.core.errors import WxbError
from wxb.core.params import check, read_yaml
from wxb.project import trained
from wxb.tasks.ner.record import Span


def test_a_trained_experiment_masks_and_its_mapping_unmasks(ner_project):
    content = "".join(f"{json.dumps({'id': 1, 'text': text})}\n" for text, _ in SENTENCES)
    path = ner_project / "in.jsonl"
    path.write_text(content)
    mask = ("mask", "in.jsonl", "--mapping", "m.json", "-e")
    masked = run(*mask, "ner-encoder", cwd=ner_project)
    warning = "ner-encoder was trained on generated texts. It misses more in real ones"
    assert masked.returncode == 0
    assert masked.stderr.startswith(warning)
    placeholders = {name: f"<NAME_{index}>" for index, (_, name) in enumerate(SENTENCES, 1)}
    assert masked.stdout == "".join(
        json.dumps({"id": 1, "text": text.replace(name, placeholders[name])}) + "\n"
        for text, name in SENTENCES
    )
    unmask = ("unmask", "--mapping", "m.json", "--format", "jsonl")
    assert run(*unmask, cwd=ner_project, stdin=masked.stdout).stdout == content
    again = run(*mask, "models/ner-encoder", cwd=ner_project)
    assert (again.stdout, again.stderr) == (masked.stdout, "")


def test_a_name_is_found_from_any_folder_of_the_project(ner_project, monkeypatch):
    (ner_project / "deep/er").mkdir(parents=True)
    monkeypatch.chdir(ner_project / "deep/er")
    assert trained.find("ner-encoder") == ner_project / "models/ner-encoder"
    monkeypatch.chdir(ner_project)
    shutil.copytree("models/ner-encoder", "deep/ner-encoder")
    monkeypatch.chdir(ner_project / "deep")
    assert trained.find("ner-encoder") == ner_project / "models/ner-encoder"


def test_a_name_has_its_prediction_settings(ner_project, monkeypatch):
    params = read_yaml(ner_project / "params.yaml")
    params["experiments"]["ner-encoder"]["prediction"] = {"batch_size": 17}
    monkeypatch.chdir(ner_project)
    monkeypatch.setattr(trained, "load_params", lambda path: check(params))
    assert trained.load("ner-encoder").prediction.batch_size == 17
    assert trained.load("ner-encoder", batch_size="5").prediction.batch_size == 5
    assert trained.load(Path("models/ner-encoder")).prediction.batch_size == 32


def test_errors_of_names_and_folders(ner_project, monkeypatch, tmp_path):
    monkeypatch.chdir(ner_project)
    with pytest.raises(WxbError, match="did you mean 'ner-encoder'"):
        trained.load("ner-encodr")
    with pytest.raises(WxbError, match=r"is not trained.*`dvc repro train@ner-decoder`.*dvc pull"):
        trained.load("ner-decoder")
    with pytest.raises(WxbError, match=r"with wxb\.json \(it has none\)"):
        trained.load(ner_project / "bert")
    with pytest.raises(WxbError, match="no such folder"):
        trained.load("models/none")
    with pytest.raises(WxbError, match=r"`: output: unknown key \(choose.*batch_size\)$"):
        trained.load("ner-encoder", output="x")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WxbError, match=r"no params\.yaml here"):
        trained.load("ner-encoder")


@pytest.mark.parametrize("broken", ["wxb.json", "head.safetensors", "tokenizer.json"])
def test_a_broken_model_is_an_error(ner_project, tmp_path, broken):
    shutil.copytree(ner_project / "models/ner-encoder", tmp_path / "m")
    (tmp_path / "m" / broken).write_text('{"model": {"type": "Unknown"}}')
    with pytest.raises(WxbError, match=r"cannot load the model.*train@m"):
        trained.load(tmp_path / "m")


def test_an_error_of_the_gpu_is_not_one_of_the_model(ner_project, monkeypatch):
    error = torch.AcceleratorError("CUDA error: all CUDA-capable devices are busy")
    monkeypatch.setattr(torch.nn.Module, "to", Mock(side_effect=error))
    with pytest.raises(torch.AcceleratorError):
        trained.load(ner_project / "models/ner-encoder")


def test_load_is_exported_by_the_package(ner_project, monkeypatch):
    monkeypatch.chdir(ner_project)
    assert wxb.load is trained.load
    (spans,) = wxb.load("ner-encoder").predict(["Yesterday Ann Lee said hello.\ud800"])
    assert spans[0].span == Span(10, 17, "NAME")
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        wxb.lode  # noqa: B018


@pytest.mark.parametrize(
    ("inputs", "error"),
    [
        ("Ann left.", r"found one input \(str\); expected a list of them"),
        (pd.DataFrame({"text": ["Ann left."]}), r"\(DataFrame\).*table\[column\]"),
        (["Ann", None], r"found NoneType at \[1\]; expected texts"),
    ],
)
def test_predict_expects_a_list_of_texts(ner_project, inputs, error):
    with pytest.raises(TypeError, match=error):
        trained.load(ner_project / "models/ner-encoder").predict(inputs)


def test_predict_reads_a_series_in_its_order(ner_project):
    predictor = trained.load(ner_project / "models/ner-encoder")
    texts = ["Nobody said hello to us.", "Yesterday Ann Lee said hello."]
    assert predictor.predict(pd.Series(texts, index=[1, 0])) == predictor.predict(texts)
