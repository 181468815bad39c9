"""`wxb predict`: every way of giving inputs gives the predictions that Python gets."""

import csv
import json
import subprocess
import sys

import pytest

import wxb
from tests.trained import SENTENCES
from tests.trained import project as trained_project

TEXTS = [text for text, _ in SENTENCES[:4]]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return trained_project(tmp_path_factory.mktemp("project"))


@pytest.fixture
def predict(project):
    def run(*arguments, given=None):
        code = "from wxb.cli.app import main; main()"
        command = [sys.executable, "-c", code, "predict", "-e", "ner-encoder", *arguments]
        return subprocess.run(
            command, cwd=project, input=given, capture_output=True, text=True, check=False
        )

    return run


@pytest.fixture
def expected(project, monkeypatch):
    monkeypatch.chdir(project)
    predictor = wxb.load("ner-encoder")
    found = predictor.predict(TEXTS)
    assert any(found)
    return [
        {"input": text, **predictor.describe(text, spans)}
        for text, spans in zip(TEXTS, found, strict=True)
    ]


def lines(done):
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_inputs_of_every_kind_are_predicted_alike(predict, project, expected):
    folder = project / "inputs"
    folder.mkdir(exist_ok=True)
    (folder / "a.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    assert lines(predict("--json", *TEXTS)) == expected
    assert lines(predict("--json", given="\n".join(TEXTS))) == expected
    assert lines(predict("--json", "-", given="\r\n".join(TEXTS))) == expected
    assert lines(predict("--json", "inputs")) == expected
    records = [{"input": text, "n": n} for n, text in enumerate(TEXTS)]
    (project / "r.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    assert lines(predict("--json", "r.jsonl")) == expected
    with (project / "r.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["said"], *([text] for text in TEXTS)])
    assert lines(predict("--json", "r.csv", "--field", "said")) == expected


def test_results_go_to_standard_output_and_progress_does_not(predict, expected):
    done = predict(*TEXTS)
    assert len(done.stdout.splitlines()) == len(TEXTS)
    span = next(row for row in expected if row["spans"])["spans"][0]
    assert f"[{span['text']}](NAME)" in done.stdout
    assert "predict:" in done.stderr


def test_a_field_that_is_not_there_is_named(predict, project):
    (project / "odd.jsonl").write_text('{"sentence": "Ann"}\n')
    done = predict("odd.jsonl")
    assert done.returncode == 1
    assert "line 1: found 'sentence'; expected a text in 'input' or 'text'" in done.stderr
    assert done.stdout == ""
