"""Exports of any task's records and predictions, and the errors if they are missing."""

import csv
import io
import json
from pathlib import Path

import pytest

from tests import demo
from wxb.core.errors import WxbError
from wxb.core.files import write_json
from wxb.corpora import clean
from wxb.corpora.records import Record
from wxb.metrics import evaluation
from wxb.tasks import exports
from wxb.tasks.ner import metrics
from wxb.tasks.ner.metrics import PredictionRow
from wxb.tasks.ner.record import LABELLING, Span

LABELLED = {"id": "1", "input": "Zoë\u2028東京", "language": "en", "gold": "fr"}


def test_csv_has_a_header_and_json_cells():
    nested = {**LABELLED, "id": "2", "input": 'a "b",\nc', "gold": [[0, 1, "NAME"]]}
    content = "".join(exports.FORMATS["csv"]([LABELLED, nested]))
    first, second = csv.DictReader(io.StringIO(content, newline=""))
    assert first == LABELLED
    assert {**second, "gold": json.loads(second["gold"])} == nested


SPLITS = ("train", "valid", "test", "new")


@pytest.fixture
def project(cwd):
    """Parameters; the working folder has one preprocessed corpus and one evaluated experiment."""
    folder = cwd / "data/clean/pii"
    write_json(folder / "profile.json", {"splits": {name: {} for name in SPLITS}})
    for split in SPLITS:
        text = f"{split} record"
        labelled = Record("7", text, (Span(0, len(split), "SPLIT"),), "en", text)
        records = [labelled, Record("8", "raw", None, "en", "raw")]
        clean.write(clean.split_file(folder, split), records, LABELLING)
    prediction = PredictionRow(
        "7", "test record", (Span(0, 4, "SPLIT"),), (Span(5, 11, "NOUN"),), (0.5,)
    )
    evaluation.save_predictions(
        metrics.Scorer(), cwd / "reports/predictions/ner/ner-encoder", [prediction]
    )
    return demo.params()


def test_labelled_records_of_a_split_and_rows_of_an_experiment_are_exported(project):
    for split in SPLITS:
        gold = (Span(0, len(split), "SPLIT"),)
        expected = {"id": "7", "input": f"{split} record", "language": "en", "gold": gold}
        assert exports.load_records(project, "pii", split) == [expected]
    (row,) = exports.load_records(project, "ner-encoder", "test")
    expected = {"gold": [[0, 4, "SPLIT"]], "predicted": [[5, 11, "NOUN"]], "scores": [0.5]}
    assert {key: row[key] for key in expected} == expected


@pytest.mark.parametrize(
    ("name", "split", "missing", "fault"),
    [
        ("pii", "tset", "", "no split 'tset'; did you mean 'test'"),
        ("ner-encoder", "valid", "", r"no split 'valid' \(choose from: test\)"),
        ("pii", "valid", "data/clean/pii/profile.json", "`dvc repro preprocess@pii`"),
        ("ner-decoder", "test", "", "`dvc repro evaluate@ner-decoder`"),
        ("ner-encodr", "test", "", r"did you mean 'ner-encoder'\? \(choose from: pii, "),
    ],
)
def test_missing_records_are_errors(project, name, split, missing, fault):
    if missing:
        Path(missing).unlink()
    with pytest.raises(WxbError, match=fault):
        exports.export(project, name, split, None, None)


@pytest.mark.parametrize(
    ("output", "format_", "start"),
    [
        (None, None, '{"id'),
        (None, "conll", "test\t"),
        ("a.CONLL", None, "test\t"),
        ("a.csv", None, "id,"),
        ("a.txt", "jsonl", '{"id'),
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
        yield "lost"
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
