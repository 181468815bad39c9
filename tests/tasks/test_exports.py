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


def test_an_experiment_exports_gold_and_predicted_spans(project):
    gold, predicted = (Span(0, 4, "SPLIT"),), (Span(5, 11, "NOUN"),)
    row = PredictionRow("7", "test record", gold, predicted, (0.5,))
    expected = [ExportRecord("7", "test record", "en", gold, row)]
    assert exports.load_records(project, "ner-encoder", "test") == expected


@pytest.mark.parametrize(
    ("name", "split", "missing", "fault"),
    [
        ("pii", "tset", "", "no split 'tset'; did you mean 'test'"),
        ("ner-encoder", "valid", "", r"no split 'valid' \(choose from: test\)"),
        ("pii", "valid", "data/clean/pii/profile.json", "`dvc repro preprocess@pii`"),
        ("ner-encoder", "test", "data/clean/pii/test.parquet", "`dvc repro preprocess@pii`"),
        ("ner-decoder", "test", "", "`dvc repro evaluate@ner-decoder`"),
        ("ner-encodr", "test", "", r"did you mean 'ner-encoder'\? \(choose from: pii, ner-"),
    ],
)
def test_missing_records_are_errors(project, name, split, missing, fault):
    if missing:
        Path(missing).unlink()
    with pytest.raises(WxbError, match=fault):
        exports.export(project, name, split, None, None)


def test_a_name_of_both_a_corpus_and_an_experiment_is_an_error(project):
    ambiguous = project.model_copy(update={"corpora": {"ner-encoder": project.corpora["pii"]}})
    with pytest.raises(WxbError, match="both a corpus and an experiment 'ner-encoder'"):
        exports.export(ambiguous, "ner-encoder", "test", None, None)


@pytest.mark.parametrize(
    ("output", "format_", "start"),
    [
        (None, None, '{"text'),
        (None, "conll", "test\t"),
        ("a.CONLL", None, "test\t"),
        ("a.csv", None, "id,"),
        ("a.txt", "jsonl", '{"text'),
    ],
)
def test_the_option_or_else_the_suffix_names_the_format(
    project, capfdbinary, output, format_, start
):
    exports.export(project, "pii", "test", format_, output and Path(output))
    content = Path(output).read_bytes() if output else capfdbinary.readouterr().out
    assert content.startswith(start.encode())


@pytest.mark.parametrize("output", ["a.txt", "conll", "a.conll.gz"])
def test_an_unknown_suffix_is_an_error_with_the_formats(project, output):
    with pytest.raises(WxbError, match=r"--format.*choose from: jsonl, csv, conll"):
        exports.export(project, "pii", "test", None, Path(output))


def test_an_existing_file_stays_if_writing_fails(project, monkeypatch):
    def failing_chunks(records):
        yield b"lost"
        raise WxbError("no such span")

    target, link = Path("real/test.csv"), Path("link.csv")
    exports.export(project, "pii", "train", None, target)
    link.symlink_to(target)
    exports.export(project, "pii", "test", None, link)
    assert link.is_symlink()
    content = target.read_bytes()
    assert b"test record" in content
    monkeypatch.setattr(exports, "FORMATS", {"csv": failing_chunks})
    with pytest.raises(WxbError, match="no such span"):
        exports.export(project, "pii", "test", None, target)
    assert target.read_bytes() == content
    assert [path.name for path in target.parent.iterdir()] == ["test.csv"]


def test_folders_and_devices_are_not_replaced(project):
    Path("folder.csv").mkdir()
    os.mkfifo("pipe.csv")
    Path("file").touch()
    for output in ("folder.csv", "pipe.csv", "file/test.csv"):
        with pytest.raises(WxbError, match=f"--output: {output}"):
            exports.export(project, "pii", "test", None, Path(output))
    assert Path("folder.csv").is_dir()
