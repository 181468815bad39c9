"""The command `wxb search`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import tiny
from tests.commands import wxb
from wxb.corpora.text.tokenizers import train

ROOT = Path(__file__).parents[2]
LINES = ["A puppy is playing.", "Machine learning is fascinating.", "[red]not a colour[/red]"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("search")
    (folder / "lines.txt").write_text("\n\n".join(LINES))
    (folder / "params.yaml").write_bytes((ROOT / "params.yaml").read_bytes())
    tokenizer = train("wordpiece", 300, LINES)
    tiny.bert(folder / "tiny", vocab_size=len(tokenizer))
    tokenizer.save_pretrained(folder / "tiny")
    return folder


@pytest.fixture(autouse=True)
def _in_the_folder(folder, monkeypatch):
    monkeypatch.chdir(folder)


def run(*arguments):
    return wxb("search", *arguments, path=[ROOT])


def test_it_finds_similar_texts():
    result = run("A dog is running.", "--encoder", "minilm", "--file", "lines.txt", "--json")
    rows = json.loads(result.stdout)
    assert [row["text"] for row in rows] == LINES
    assert rows[0]["cosine"] > 0.5 > 0.2 > rows[1]["cosine"]
    assert "LOAD REPORT" not in result.stderr


def test_any_folder_is_an_encoder_and_texts_are_shown_without_markup():
    options = ("--encoder", "tiny", "--file", "lines.txt", "--top", "1")
    assert run(LINES[2], *options).stdout.split("  ", 1) == ["1.000", f"{LINES[2]}\n"]


def test_it_warns_of_an_encoder_that_is_not_trained_for_similarity():
    assert (
        "tiny was not trained for similarity"
        in run("x", "--encoder", "tiny", "--file", "lines.txt").stderr
    )
    result = run("A dog is running.", "--file", "lines.txt")
    assert result.stderr == ""
    assert result.stdout.splitlines()[0].split(maxsplit=1)[1].strip() == LINES[0]


def test_an_empty_query_is_a_usage_error():
    result = run("  ", "--encoder", "tiny", "--file", "lines.txt")
    assert result.returncode == 2
    assert "expected words to look for" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--encoder", "encodr", "--file", "lines.txt"], "did you mean 'encoder'"),
        (["--encoder", "encoder", "--file", "lines.txt"], "run `dvc repro pretrain@encoder` first"),
        (["--encoder", "tiny"], "run `dvc repro preprocess@pii` first"),
        (["--encoder", "tiny", "--corpus", "pi"], "did you mean 'pii'"),
        (["--encoder", "tiny", "--file", "none.txt"], "none.txt: expected a text file"),
    ],
)
def test_missing_inputs_are_errors(arguments, message):
    result = run("x", *arguments)
    assert result.returncode == 1
    assert message in result.stderr
    assert result.stdout == ""


def test_without_the_package_the_error_says_how_to_install_it():
    code = (
        "import sys, importlib.util as u\n"
        "import wxb.core.hub\n"
        "wxb.core.hub.find_spec = lambda name: None\n"
        "from wxb.cli.app import main; sys.argv = ['wxb', 'search', 'x', '--encoder', 'minilm',"
        " '--file', 'lines.txt']; main()"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 1
    assert "pip install --editable '.[pretrained]'" in result.stderr
