"""`wxb new corpus` and the readers, for a small file of every format that they recognize."""

import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.cli.new.formats import CASES, write
from tests.cli.new.samples import CLASSIFIED, TAG_IDS, TOKENS, as_lines
from wxb import tasks
from wxb.cli.new import corpus
from wxb.cli.new.layout import as_folder
from wxb.core.errors import WxbError
from wxb.core.params.tasks import corpora
from wxb.corpora.reading import read
from wxb.corpora.records import Record
from wxb.tasks.values import SPLITS


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def gold_of(record, task):
    """The gold of a record as in CASES."""
    match task:
        case _ if record.gold is None:
            return None
        case "ner":
            return [tuple(span) for span in record.gold]
        case "chat":
            return record.gold["text"]
        case _:
            return record.gold


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_format_is_recognized_and_read(case):
    write(case.files)
    guess = corpus.guess_corpus(Path(case.path), None)
    ((_, block),) = YAML(typ="safe").load(guess.block).items()
    assert block["task"] == case.task
    params = corpora()[case.task].model_validate(block)
    task = tasks.get(case.task)
    with as_folder(Path(case.path)) as raw:
        items = [*read(raw, params, task.reading)]
        assert [item for item in items if not isinstance(item, Record)] == []
        records = [(record.input, gold_of(record, case.task)) for record in items]
        assert sorted(records, key=str) == sorted(case.records, key=str)


def test_published_tests_without_validation_are_kept():
    case = next(case for case in CASES if case.name == "aclImdb")
    write(case.files)
    ((_, block),) = YAML(typ="safe").load(corpus.guess_corpus(Path("own"), None).block).items()
    assert block["split"]["further"] == {"published": {"files": ["test/*"]}}
    assert block["classes"] == {"bad": "bad", "good": "good", "unsup": None}


def test_docbin_without_spacy_names_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "spacy.tokens", None)
    Path("own.spacy").write_bytes(b"")
    with pytest.raises(WxbError, match=r"DocBin needs spaCy: .*pip install --editable"):
        corpus.guess_corpus(Path("own.spacy"), None)


def test_files_of_other_lengths_are_no_pairs():
    write({"own/a.en": "One.\nTwo.\n", "own/a.zh": "一。\n"})
    with pytest.raises(WxbError, match=r"a\.en: found 2 lines, and 1 in a\.zh"):
        corpus.guess_corpus(Path("own"), None)


def test_tags_without_names_say_what_to_do():
    write({"own.jsonl": as_lines({"tokens": t, "ner_tags": TAG_IDS} for t in TOKENS)})
    with pytest.raises(WxbError, match=r"tags without names: .* give the folder with `dataset_inf"):
        corpus.guess_corpus(Path("own.jsonl"), None)


def test_a_text_with_several_classes_is_rejected():
    rows = [{"text": t, "label": [name]} for t, name in CLASSIFIED]
    write({"own.jsonl": as_lines([*rows, {"text": "Both.", "label": ["good", "bad"]}])})
    assert corpus.guess_corpus(Path("own.jsonl"), None).trial.rejects == {"several classes": 1}


def test_files_of_one_text_each_are_no_classes():
    write({f"own/{n}.json": as_lines([{"text": text}]) for n, (text, _) in enumerate(CLASSIFIED)})
    with pytest.raises(WxbError, match="found fields 'text': text; expected one of"):
        corpus.guess_corpus(Path("own"), None)


def test_annotations_beside_texts_are_no_table():
    write({f"own/{n}.txt": text for n, (text, _) in enumerate(CLASSIFIED)})
    write({f"own/{n}.ann": f"T1\tPER {n} 13\tAnn\n" * 9 for n in range(len(CLASSIFIED))})
    with pytest.raises(WxbError, match=r"0\.ann: found lines such as .*; expected one of"):
        corpus.guess_corpus(Path("own"), None)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("own.csv.gz", "text/csv, gzip"), ("own.zip", "application/zip"), ("own/a.wav", "audio/")],
)
def test_files_that_are_no_text_say_what_to_do(name, kind):
    write({name: bytes([80, 75, 0, 255]) * 9})
    with pytest.raises(WxbError, match=f"found no text, {kind}.*: unpack it, or export it as CSV"):
        corpus.guess_corpus(Path(name.partition("/")[0]), None)


def test_errors_list_few_fields():
    write({"own.jsonl": as_lines({f"f{n}": n for n in range(40)} for _ in range(3))})
    with pytest.raises(WxbError, match="'f11': number, 1 value; and 28 more; expected one of"):
        corpus.guess_corpus(Path("own.jsonl"), None)


def test_an_encoding_is_reported_once(capsys):
    case = next(case for case in CASES if case.name == "cp1252 with semicolons")
    write(case.files)
    corpus.guess_corpus(Path(case.path), None)
    assert capsys.readouterr().err.count("own.csv: not UTF-8; read as cp1252") == 1


def test_validated_recordings_are_no_validation_split():
    assert not SPLITS["valid"].search("validated.tsv")
    assert SPLITS["valid"].search("validation.tsv")
