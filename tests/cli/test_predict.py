"""`wxb predict` has the same predictions as Python, from every kind of input."""

import csv
import json
from functools import partial

import pytest

import wxb
from tests import commands
from tests.ner_project import SENTENCES
from wxb.core.params import read_yaml

TEXTS = [text for text, _ in SENTENCES[:4]]


@pytest.fixture
def predict(ner_project):
    return partial(commands.wxb, "predict", "-e", "ner-encoder", cwd=ner_project)


@pytest.fixture
def expected(ner_project, monkeypatch):
    monkeypatch.chdir(ner_project)
    predictor = wxb.load("ner-encoder")
    predictions = predictor.predict(TEXTS)
    assert any(predictions)
    return [
        {"input": text, **predictor.output_fields(text, spans)}
        for text, spans in zip(TEXTS, predictions, strict=True)
    ]


def rows(result):
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.rstrip("\n").split("\n")]


def lines(result):
    """The rows without their places."""
    return [{key: row[key] for key in ("input", "spans")} for row in rows(result)]


def test_inputs_of_every_kind_have_the_same_predictions(predict, ner_project, expected):
    folder = ner_project / "inputs"
    folder.mkdir(exist_ok=True)
    (folder / "a.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    assert lines(predict("--json", *TEXTS)) == expected
    places = [{"line": number} for number in range(1, 5)]
    merged = [{**place, **row} for place, row in zip(places, expected, strict=True)]
    assert rows(predict("--json", stdin="\n".join(TEXTS))) == merged
    assert lines(predict("--json", "-", stdin="\r\n".join(TEXTS))) == expected
    assert lines(predict("--json", "inputs")) == expected
    records = [{"input": text, "n": n} for n, text in enumerate(TEXTS)]
    (ner_project / "r.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    assert lines(predict("--json", "r.jsonl")) == expected
    with (ner_project / "r.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["sentence"], *([text] for text in TEXTS)])
    assert lines(predict("--json", "r.csv", "--field", "sentence")) == expected


ROWS = '{"id": 5, "input": "Ann"}\n%s\n{"input": "Bo"}\n'


@pytest.mark.parametrize(
    ("name", "files", "places"),
    [
        ("r.jsonl", {"r.jsonl": ROWS % "null"}, [{"line": 1, "id": 5}, {"line": 2}, {"line": 3}]),
        ("r.jsonl", {"r.jsonl": ROWS % '{"input": "\\ud800"}'}, [{"id": 5}, {"line": 2}, {}]),
        ("-", {"-": "\ufeffAnn\n\udcff\nBo\n"}, [{"line": 1}, {"line": 2}, {"line": 3}]),
        ("a b c", {"a": "Ann", "b": "\udcff", "c": "Bo"}, [{}, {"file": "b"}, {"file": "c"}]),
        ("m", {"m/a": "Ann", "m/b": "\udcff", "m/c": "Bo"}, [{}, {"file": "m/b"}, {"file": "m/c"}]),
    ],
)
def test_an_unreadable_input_is_a_row_with_its_reason(predict, ner_project, name, files, places):
    (ner_project / "m").mkdir(exist_ok=True)
    for path, content in files.items():
        (ner_project / path).write_bytes(content.encode(errors="surrogateescape"))
    result = predict("--json", *name.split(), stdin=files.get("-", ""))
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["input"] for row in rows] == ["Ann", None, "Bo"]
    assert all(place.items() <= row.items() for place, row in zip(places, rows, strict=True))
    assert (result.returncode, rows[1]["error"] in result.stderr) == (1, True)


def test_predictions_go_to_standard_output_and_progress_does_not(predict, expected):
    (line,) = predict(TEXTS[0]).stderr.splitlines()  # one batch shows no progress
    assert line.startswith("ner-encoder was trained on generated texts.")
    many = TEXTS * 16
    result = predict(*many)
    assert len(result.stdout.splitlines()) == len(many)
    span = next(row for row in expected if row["spans"])["spans"][0]
    assert f"[{span['text']}](NAME)" in result.stdout
    assert "found no records" in predict("-", stdin="").stderr
    assert "predict:" in result.stderr


def test_the_corpus_of_the_experiment_names_the_field(predict, ner_project, expected):
    params = ner_project / "params.yaml"
    before = params.read_text()
    content = read_yaml(params)
    content["corpora"]["pii"]["fields"] = {"input": "full_text"}
    params.write_text(json.dumps(content))
    try:
        records = [{"full_text": text, "text": "other"} for text in TEXTS]
        (ner_project / "own.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
        assert lines(predict("--json", "own.jsonl")) == expected
    finally:
        params.write_text(before)


def test_only_line_feeds_separate_inputs(predict, ner_project):
    text = "Ann\u2028and\x0cBob\x85 say"
    (ner_project / "separators.txt").write_text(f"{text}\nCy\n", newline="")
    expected = [text, "Cy"]
    assert [row["input"] for row in lines(predict("--json", "separators.txt"))] == expected
    assert [row["input"] for row in lines(predict("--json", stdin=f"{text}\nCy\n"))] == expected


def test_hidden_files_and_descriptions_of_a_folder_are_not_read(predict, ner_project):
    folder = ner_project / "with-hidden"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git/config").write_text("hidden\n")
    (folder / ".DS_Store").write_bytes(b"\xff\xfe")
    (folder / "README.md").write_text("# Names\n")
    (folder / "a.txt").write_text("Ann\n")
    assert [row["input"] for row in lines(predict("--json", "with-hidden"))] == ["Ann"]


def test_a_text_may_begin_with_a_dash(predict):
    texts = ["- the Ann", "-5 of Ann", "--Ann is here"]
    assert [row["input"] for row in lines(predict("--json", *texts))] == texts
    assert predict("-x", "Ann").returncode == 2


def test_without_an_experiment_the_trained_ones_are_named(ner_project):
    result = commands.wxb("predict", "Ann", cwd=ner_project)
    assert result.returncode == 2
    assert "missing; trained experiments:" in result.stderr
    assert "ner-encoder" in result.stderr


def test_an_unreadable_file_is_refused_before_the_model_is_loaded(ner_project):
    (ner_project / "binary.txt").write_bytes(b"\xff\xfeA")
    weights = ner_project / "models/ner-encoder/head.safetensors"
    weights.rename(ner_project / "away")
    result = commands.wxb("predict", "-e", "ner-encoder", "binary.txt", cwd=ner_project)
    (ner_project / "away").rename(weights)
    assert result.returncode == 1
    assert "binary.txt: found byte 0x" in result.stderr
