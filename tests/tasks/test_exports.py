"""Exports of any task's records and predictions, and the errors if they are missing."""

import csv
import io
import json
import os
from pathlib import Path

import pytest

from tests.project_copy import ROOT
from wxb.core.errors import WxbError
from wxb.core.files import write_json
from wxb.core.params import check, read_yaml
from wxb.corpora import clean
from wxb.corpora.records import Record
from wxb.metrics import evaluation
from wxb.metrics.scorer import PredictionRow as Row
from wxb.tasks import exports
from wxb.tasks.exports import ExportRecord
from wxb.tasks.ner import metrics
from wxb.tasks.ner.metrics import PredictionRow
from wxb.tasks.ner.record import Labelling
from wxb.tasks.ner.record.spans import Span

LABELLED = ExportRecord("1", "Zoë\u2028東京", "en", "fr")
WITH_PREDICTION = LABELLED._replace(row=Row("1", LABELLED.input, "fr", "de"))


def test_jsonl_has_one_line_for_each_record():
    (line,) = exports.jsonl([LABELLED])
    assert line.count(b"\n") == 1
    assert "\u2028" not in line.decode()
    assert json.loads(line) == {"id": "1", "input": LABELLED.input, "language": "en", "gold": "fr"}
    (line,) = exports.jsonl([WITH_PREDICTION])
    assert json.loads(line).items() >= {"gold": "fr", "predicted": "de", "language": "en"}.items()


def test_csv_has_a_header_and_json_cells():
    nested = LABELLED._replace(id="2", input='a "b",\nc', gold=[[0, 1, "NAME"]])
    content = b"".join(exports.table([LABELLED, nested])).decode()
    first, second = csv.DictReader(io.StringIO(content, newline=""))
    assert first == {"id": "1", "input": LABELLED.input, "language": "en", "gold": "fr"}
    assert second["input"] == nested.input
    assert json.loads(second["gold"]) == nested.gold


SPLITS = ("train", "valid", "test", "new")


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Parameters; the working folder has one preprocessed corpus and one evaluated experiment."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "data/clean/pii"
    folder.mkdir(parents=True)
    write_json(folder / "profile.json", {"splits": {name: {} for name in SPLITS}})
    for split in SPLITS:
        text = f"{split} record"
        labelled = Record("7", text, (Span(0, len(split), "SPLIT"),), "en", text)
        clean.write(
            folder / f"{split}.parquet",
            [labelled, Record("8", "raw", None, "en", "raw")],
            Labelling(),
        )
    prediction = PredictionRow(
        "7", "test record", (Span(0, 4, "SPLIT"),), (Span(5, 11, "NOUN"),), (0.5,)
    )
    evaluation.write(
        metrics.Scorer(), tmp_path / "reports/predictions/ner/ner-encoder", [prediction]
    )
    return check(read_yaml(ROOT / "params.yaml"))


def test_labelled_records_of_a_split_are_exported(project):
    for split in SPLITS:
        span = Span(0, len(split), "SPLIT")
        assert exports.load_records(project, "pii", split) == [
            ExportRecord("7", f"{split} record", "en", (span,))
        ]
    with pytest.raises(WxbError, match="has no split 'tset'; did you mean 'test'"):
        exports.load_records(project, "pii", "tset")


def test_an_experiment_exports_gold_and_predicted_spans(project):
    gold, predicted = (Span(0, 4, "SPLIT"),), (Span(5, 11, "NOUN"),)
    assert exports.load_records(project, "ner-encoder", "test") == [
        ExportRecord(
            "7",
            "test record",
            "en",
            gold,
            PredictionRow("7", "test record", gold, predicted, (0.5,)),
        )
    ]
    with pytest.raises(WxbError, match="found split 'valid': export its corpus 'pii'"):
        exports.load_records(project, "ner-encoder", "valid")


def test_errors_name_the_command_that_writes_a_missing_file(project):
    Path("data/clean/pii/profile.json").unlink()
    with pytest.raises(WxbError, match=r"profile\.json does not.*`dvc repro preprocess@pii`"):
        exports.load_records(project, "pii", "valid")
    with pytest.raises(WxbError, match="`dvc repro evaluate@ner-decoder`"):
        exports.load_records(project, "ner-decoder", "test")
    with pytest.raises(WxbError, match=r"did you mean 'ner-encoder'\? \(choose from: pii, ner-"):
        exports.load_records(project, "ner-encodr", "test")


def test_a_name_of_both_a_corpus_and_an_experiment_is_an_error(project):
    ambiguous = project.model_copy(update={"corpora": {"ner-encoder": project.corpora["pii"]}})
    with pytest.raises(WxbError, match="corpus and an experiment 'ner-encoder'"):
        exports.task_of(ambiguous, "ner-encoder")


@pytest.mark.parametrize(
    ("output", "name", "expected"),
    [
        (None, None, "jsonl"),
        (None, "conll", "conll"),
        ("a.CONLL", None, "conll"),
        ("a.jsonl", None, "jsonl"),
        ("a.spacy", None, "spacy"),
        ("a.txt", "conll", "conll"),
        ("a.jsonl", "spacy", "spacy"),
    ],
)
def test_the_option_or_else_the_suffix_names_the_format(output, name, expected):
    assert exports.choose_format(output and Path(output), name, "ner") == expected


def test_unknown_suffixes_and_binary_formats_without_a_file_are_errors():
    for output in ("a.txt", "spacy", "a.conll.gz"):
        with pytest.raises(WxbError, match="the task ner has conll, csv, jsonl, spacy"):
            exports.choose_format(Path(output), None, "ner")
    with pytest.raises(WxbError, match="with --output"):
        exports.choose_format(None, "spacy", "ner")


def failing_chunks():
    yield b"lost"
    raise WxbError("no such format")


def test_an_existing_file_stays_if_writing_fails(tmp_path):
    target, link = tmp_path / "real/test.conll", tmp_path / "link.conll"
    exports.write([b"new"], target)
    link.symlink_to(target)
    exports.write([b"new", b"er"], link)
    assert link.is_symlink()
    assert target.read_bytes() == b"newer"
    with pytest.raises(WxbError, match="no such format"):
        exports.write(failing_chunks(), target)
    assert target.read_bytes() == b"newer"
    assert [path.name for path in target.parent.iterdir()] == ["test.conll"]


def test_folders_and_devices_are_not_replaced(tmp_path):
    folder, pipe = tmp_path / "folder.conll", tmp_path / "pipe.conll"
    (folder / "inside").mkdir(parents=True)
    os.mkfifo(pipe)
    for output in (folder, pipe):
        with pytest.raises(WxbError, match="expected a file"):
            exports.write([b""], output)
    assert (folder / "inside").exists()
    (tmp_path / "file").touch()
    with pytest.raises(WxbError, match="cannot be written"):
        exports.write([b""], tmp_path / "file/test.conll")
