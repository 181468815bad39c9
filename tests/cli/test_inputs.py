"""The texts of files for `wxb predict`, in every format of a corpus."""

from pathlib import Path

import pytest

from tests.cli.new.formats import CASES, TAGS, TOKENS, as_lines
from tests.repository import write_files
from wxb.cli.inputs import TextReader
from wxb.cli.new.corpus import new_corpus
from wxb.core.errors import WxbError
from wxb.core.params.tasks import corpus_class
from wxb.corpora.records import required_text
from wxb.tasks.classification.reading import Reading

SPLIT = {"test": 0.2, "valid": 0.1}
pytestmark = pytest.mark.usefixtures("cwd")


def reader_of(task, block=None):
    """The reader for an experiment of a task, on the corpus of a block if any."""
    reader = TextReader("experiment")
    params = corpus_class(task).model_validate(block) if block else None
    vars(reader).update(task=task, corpus=params)
    return reader


def read(reader, path):
    """The texts of a file without errors."""
    items = [*reader.read(Path(path))]
    assert not any(item.error for item in items)
    return [item.input for item in items]


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.path != "own"], ids=lambda case: case.name
)
def test_the_inputs_are_those_of_the_records(case):
    write_files(case.files)
    path = Path(case.path)
    block, _ = new_corpus(path, None, case.flags)
    assert sorted(read(reader_of(case.task, block), path)) == sorted(t for t, _ in case.records)


@pytest.mark.parametrize("name", ["fastText", "Tatoeba"])
def test_files_of_lines_need_no_corpus(name):
    case = next(case for case in CASES if case.name == name)
    write_files(case.files)
    assert read(reader_of(case.task), case.path) == [text for text, _ in case.records]


def test_a_task_that_new_corpus_does_not_know_reads_a_text_per_line():
    write_files({"own.txt": "Ann.\nBo.\n"})
    assert read(reader_of("no-new"), "own.txt") == ["Ann.", "Bo."]


@pytest.mark.parametrize("name", ["own.xlsx", "own.tmx", "own.vtt"])
def test_formats_that_no_corpus_reads_are_refused(name):
    write_files({name: "WEBVTT\n"})
    with pytest.raises(WxbError, match="; save "):
        read(reader_of("ner"), name)


@pytest.mark.parametrize("tag", ["O", "B-PER"])
def test_columns_are_no_lines(tag):
    rows = "\n".join("".join(f"{token} {tag}\n" for token in row) for row in TOKENS)
    write_files({"own.txt": rows})
    assert read(reader_of("ner"), "own.txt") == [" ".join(row) for row in TOKENS]


def test_lines_are_no_table_for_a_tab_in_one():
    block = {"task": "classification", "path": "x", "columns": ["text", "label"], "split": SPLIT}
    write_files({"own.txt": "Hello, Ann.\nHello\tBob.\n"})
    assert read(reader_of("classification", block), "own.txt") == ["Hello, Ann.", "Hello\tBob."]


def test_tokens_are_read_with_the_fields_of_any_corpus():
    fields = {"input": "full_text", "spans": "entities"}
    block = {"task": "ner", "path": "x", "fields": fields, "split": SPLIT}
    write_files({"own.jsonl": as_lines({"tokens": row, "ner_tags": TAGS} for row in TOKENS)})
    assert read(reader_of("ner", block), "own.jsonl") == [" ".join(row) for row in TOKENS]


def test_a_conversation_needs_no_answer():
    block = {"task": "chat", "path": "x", "split": SPLIT}
    rows = [
        {"messages": [{"role": "user", "content": "Where is Ann?"}]},
        {"instruction": "Spell it.", "input": "cat"},
        {"text": "Who?"},
        {"input": "Why?"},  # as `wxb export` writes records
    ]
    write_files({"own.jsonl": as_lines(rows)})
    texts = ["Where is Ann?", "Spell it.\ncat", "Who?", "Why?"]
    assert read(reader_of("chat", block), "own.jsonl") == texts


def test_messages_need_no_corpus_and_bad_ones_have_their_reason():
    turns = [{"role": role, "content": "Hi"} for role in ("user", "user")]
    write_files({"own.jsonl": as_lines({"messages": turns[:end]} for end in (1, 2))})
    items = [*reader_of("chat").read(Path("own.jsonl"))]
    write_files({"own.csv": f'messages\n"{turns[:1]}"\n'})
    assert [item.input for item in items] == ["Hi", None]
    assert read(reader_of("chat"), "own.csv") == ["Hi"]
    assert "roles out of order" in items[1].error


def test_records_have_their_id_or_line_and_a_bad_one_its_reason():
    block = {"task": "classification", "path": "x", "fields": {"input": "review"}, "split": SPLIT}
    rows = [{"id": "a", "review": "Good."}, {"id": 7, "body": "Bad."}, {"review": "So."}, None]
    write_files({"own.jsonl": as_lines([*rows, {"review": ""}, {"review": " "}, {"text": ""}])})
    items = [*reader_of("classification", block).read(Path("own.jsonl"))]
    places = [{"line": 1, "id": "a"}, {"line": 2, "id": 7}, *({"line": n} for n in range(3, 8))]
    assert [item.place for item in items] == [{"file": "own.jsonl", **place} for place in places]
    assert [item.input for item in items] == ["Good.", None, "So.", *[None] * 4]
    for number, item in enumerate(items, start=1):
        assert item.error.startswith(f"own.jsonl: line {number}: ") == (number not in (1, 3))
        assert (": blank text: " in item.error) == (number > 4)
    assert "'review' or 'input' or 'text'" in items[1].error


def test_a_record_without_its_second_text_is_no_input(monkeypatch):
    def join(_, raw, __):
        return "|".join(required_text(raw, key) for key in ("text", "second"))

    monkeypatch.setattr(Reading, "input_of", join)
    write_files({"own.jsonl": as_lines({"text": "A", "second": second} for second in ("B", ""))})
    block = {"task": "classification", "path": "x", "fields": {"input": "text"}, "split": SPLIT}
    items = [*reader_of("classification", block).read(Path("own.jsonl"))]
    assert [item.input for item in items] == ["A|B", None]
