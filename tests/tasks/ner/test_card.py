"""Model cards of NER: the code on them prints the tags of our own model."""

import re
import shutil
import subprocess
import sys

import pytest
import torch
from transformers import AutoTokenizer

from tests.ner_project import create_project
from wxb.core import params
from wxb.core.errors import WxbError
from wxb.project import trained
from wxb.project.sharing import card
from wxb.tasks.ner.record.bio import tag_names


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return create_project(tmp_path_factory.mktemp("project"))


@pytest.mark.slow
def test_plain_transformers_give_the_same_tags(project, monkeypatch):
    monkeypatch.chdir(project)
    text = card.card(params.load(), "ner-encoder")
    code = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[1]
    assert "wxb" not in code.replace("wxb.json", "")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=True
    )
    assert "MISSING" not in done.stderr
    assert "UNEXPECTED" not in done.stderr
    recognizer = trained.load("ner-encoder")
    tokenizer = AutoTokenizer.from_pretrained("models/ner-encoder")
    inputs = tokenizer("Call Ann Miller.", return_tensors="pt", return_token_type_ids=False)
    with torch.no_grad():
        logits = recognizer.model(**inputs)["tags"]
    names = tag_names(recognizer.types)
    assert done.stdout == f"{[names[best] for best in logits[0].argmax(dim=-1).tolist()]}\n"


def test_missing_scores_by_type_are_an_error(project, tmp_path, monkeypatch):
    monkeypatch.chdir(shutil.copytree(project, tmp_path / "copy"))
    shutil.rmtree("reports/predictions")
    with pytest.raises(WxbError, match="run `dvc repro evaluate@ner-encoder` first"):
        card.card(params.load(), "ner-encoder")
