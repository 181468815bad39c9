"""`wxb predict`: every way of giving inputs gives the predictions that Python gets."""

import csv
import json
import subprocess
import sys

import pytest

import wxb
from tests import commands
from tests.trained import SENTENCES
from tests.trained import project as trained_project

TEXTS = [text for text, _ in SENTENCES[:4]]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return trained_project(tmp_path_factory.mktemp("project"))


@pytest.fixture
def predict(project):
    def run(*arguments, given=""):
        return commands.wxb("predict", "-e", "ner-encoder", *arguments, cwd=project, given=given)

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
    return [json.loads(line) for line in done.stdout.rstrip("\n").split("\n")]


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
    assert predict(TEXTS[0]).stderr == ""  # a single batch is done when it is told of
    many = TEXTS * 16
    done = predict(*many)
    assert len(done.stdout.splitlines()) == len(many)
    span = next(row for row in expected if row["spans"])["spans"][0]
    assert f"[{span['text']}](NAME)" in done.stdout
    assert "predict:" in done.stderr


def test_a_field_that_is_not_there_is_named(predict, project):
    (project / "odd.jsonl").write_text('{"sentence": "Ann"}\n')
    done = predict("odd.jsonl")
    assert done.returncode == 1
    assert "line 1: found 'sentence'; expected a text in 'input' or 'text'" in done.stderr
    assert done.stdout == ""


def test_a_slip_in_a_name_is_told_before_the_model_is_loaded(predict):
    done = predict("no-such.jsonl")
    assert done.returncode == 2
    assert "no file 'no-such.jsonl'" in done.stderr


@pytest.mark.slow
def test_bytes_that_are_no_text_are_told_with_their_line(project):
    code = "from wxb.cli.app import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "predict", "-e", "ner-encoder"],
        cwd=project,
        input=b"Ann\n\xff\n",
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1
    assert b"standard input, line 2: expected UTF-8" in done.stderr


def test_only_a_line_feed_ends_an_input(predict, project):
    said = "Ann\u2028and\x0cBob\x85 say"
    (project / "separators.txt").write_text(f"{said}\nCy\n", newline="")
    expected = [said, "Cy"]
    assert [row["input"] for row in lines(predict("--json", "separators.txt"))] == expected
    assert [row["input"] for row in lines(predict("--json", given=f"{said}\nCy\n"))] == expected


def test_hidden_files_of_a_folder_are_not_read(predict, project):
    folder = project / "with-hidden"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git/config").write_text("hidden\n")
    (folder / ".DS_Store").write_bytes(b"\xff\xfe")
    (folder / "a.txt").write_text("Ann\n")
    assert [row["input"] for row in lines(predict("--json", "with-hidden"))] == ["Ann"]


def test_a_text_may_begin_with_a_dash(predict):
    found = lines(predict("--json", "- Ann", "-5 of Ann"))
    assert [row["input"] for row in found] == ["- Ann", "-5 of Ann"]
    assert predict("-x", "Ann").returncode == 2
