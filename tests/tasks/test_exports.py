"""What any task's records and predictions are written as, and what is told where they are not."""

import csv
import io
import json
import os
from pathlib import Path

import pytest

from tests.copied import ROOT
from wxb.core.errors import WxbError
from wxb.core.files import write_json
from wxb.core.params import check, read_yaml
from wxb.corpora import clean
from wxb.corpora.records import Record
from wxb.metrics import evaluation
from wxb.metrics.scorer import Judged as Row
from wxb.tasks import exports
from wxb.tasks.exports import Exported
from wxb.tasks.ner import metrics
from wxb.tasks.ner.metrics import Judged
from wxb.tasks.ner.record import Labelling
from wxb.tasks.ner.record.spans import Span

LABELLED = Exported("1", "Zoë\u2028東京", "en", "fr")
PREDICTED = LABELLED._replace(row=Row("1", LABELLED.input, "fr", "de"))


def test_any_record_is_a_line_of_json():
    (line,) = exports.jsonl([LABELLED])
    assert line.count(b"\n") == 1
    assert "\u2028" not in line.decode()
    assert json.loads(line) == {"id": "1", "input": LABELLED.input, "language": "en", "gold": "fr"}
    (line,) = exports.jsonl([PREDICTED])
    assert json.loads(line).items() >= {"gold": "fr", "predicted": "de", "language": "en"}.items()


def test_any_records_are_a_table():
    nested = LABELLED._replace(id="2", input='a "b",\nc', gold=[[0, 1, "NAME"]])
    content = b"".join(exports.table([LABELLED, nested])).decode()
    first, second = csv.DictReader(io.StringIO(content, newline=""))
    assert first == {"id": "1", "input": LABELLED.input, "language": "en", "gold": "fr"}
    assert second["input"] == nested.input
    assert json.loads(second["gold"]) == nested.gold


SPLITS = ("train", "valid", "test", "new")


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The parameters of a working folder with one clean corpus and one evaluated experiment."""
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
    prediction = Judged("7", "test record", (Span(0, 4, "SPLIT"),), (Span(5, 11, "NOUN"),), (0.5,))
    evaluation.write(
        metrics.Scorer(), tmp_path / "reports/predictions/ner/ner-encoder", [prediction]
    )
    return check(read_yaml(ROOT / "params.yaml"))


def test_a_corpus_gives_the_labelled_records_of_a_split(project):
    for split in SPLITS:
        span = Span(0, len(split), "SPLIT")
        assert exports.records(project, "pii", split) == [
            Exported("7", f"{split} record", "en", (span,))
        ]
    with pytest.raises(WxbError, match="has no split 'tset'; did you mean 'test'"):
        exports.records(project, "pii", "tset")


def test_an_experiment_gives_gold_and_predicted_spans(project):
    gold, predicted = (Span(0, 4, "SPLIT"),), (Span(5, 11, "NOUN"),)
    assert exports.records(project, "ner-encoder", "test") == [
        Exported(
            "7", "test record", "en", gold, Judged("7", "test record", gold, predicted, (0.5,))
        )
    ]
    with pytest.raises(WxbError, match="found split 'valid': export its corpus 'pii'"):
        exports.records(project, "ner-encoder", "valid")


def test_what_is_not_there_is_told_with_the_command_that_makes_it(project):
    Path("data/clean/pii/profile.json").unlink()
    with pytest.raises(WxbError, match=r"profile\.json: .*`dvc repro preprocess@pii`"):
        exports.records(project, "pii", "valid")
    with pytest.raises(WxbError, match="`dvc repro evaluate@ner-decoder`"):
        exports.records(project, "ner-decoder", "test")
    with pytest.raises(WxbError, match=r"did you mean 'ner-encoder'\? \(there is: pii, ner-"):
        exports.records(project, "ner-encodr", "test")


def test_a_name_of_two_things_is_an_error(project):
    both = project.model_copy(update={"corpora": {"ner-encoder": project.corpora["pii"]}})
    with pytest.raises(WxbError, match="corpus and an experiment 'ner-encoder'"):
        exports.task_of(both, "ner-encoder")


@pytest.mark.parametrize(
    ("output", "given", "chosen"),
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
def test_the_format_is_given_or_that_of_the_suffix(output, given, chosen):
    assert exports.format_of(output and Path(output), given, "ner") == chosen


def test_no_format_is_guessed():
    for output in ("a.txt", "spacy", "a.conll.gz"):
        with pytest.raises(WxbError, match="there is conll, csv, jsonl, spacy"):
            exports.format_of(Path(output), None, "ner")
    with pytest.raises(WxbError, match="with --output"):
        exports.format_of(None, "spacy", "ner")


def failing():
    yield b"lost"
    raise WxbError("no such format")


def test_a_file_is_replaced_whole_or_stays(tmp_path):
    target, link = tmp_path / "real/test.conll", tmp_path / "link.conll"
    exports.write([b"new"], target)
    link.symlink_to(target)
    exports.write([b"new", b"er"], link)
    assert link.is_symlink()
    assert target.read_bytes() == b"newer"
    with pytest.raises(WxbError, match="no such format"):
        exports.write(failing(), target)
    assert target.read_bytes() == b"newer"
    assert [path.name for path in target.parent.iterdir()] == ["test.conll"]


def test_a_folder_or_a_device_is_not_replaced(tmp_path):
    kept, pipe = tmp_path / "folder.conll", tmp_path / "pipe.conll"
    (kept / "inside").mkdir(parents=True)
    os.mkfifo(pipe)
    for output in (kept, pipe):
        with pytest.raises(WxbError, match="expected a file"):
            exports.write([b""], output)
    assert (kept / "inside").exists()
    (tmp_path / "file").touch()
    with pytest.raises(WxbError, match="cannot be written"):
        exports.write([b""], tmp_path / "file/test.conll")
