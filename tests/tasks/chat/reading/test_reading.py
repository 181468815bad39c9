import json
from pathlib import Path

import pytest

from wxb.corpora.reading import read_folder
from wxb.corpora.records import Reject
from wxb.corpora.text.templates import message
from wxb.tasks.chat import reading
from wxb.tasks.chat.params import Corpus
from wxb.tasks.chat.record.conversation import deserialize


def corpus(**more):
    return Corpus(task="chat", path="x", split={"test": 0.2, "valid": 0.2}, **more)


def read_lines(folder, *lines, **more):
    """Write lines of JSON to a file, and read its records."""
    path = Path(folder, "a.jsonl")
    path.write_text("\n".join(map(json.dumps, lines)))
    return list(read_folder(Path(folder), corpus(**more), reading.Reading()))


def test_instruction_with_input_and_system(tmp_path):
    line = {"instruction": "Who?", "input": "Ann ran.", "output": "Ann ", "system": "Short."}
    (item,) = read_lines(tmp_path, line)
    assert deserialize(item.input) == [
        message("system", "Short."),
        message("user", "Who?\nAnn ran."),
    ]
    assert item.gold == {"text": "Ann", "kind": None, "format": None}


def test_messages_keep_all_turns(tmp_path):
    turns = [message(("user", "assistant")[i % 2], str(i)) for i in range(4)]
    (item,) = read_lines(tmp_path, {"messages": turns, "kind": "k", "format": "number"})
    assert deserialize(item.input) == turns[:-1]
    assert item.gold == {"text": "3", "kind": "k", "format": "number"}


def test_names_of_fields_and_csv(tmp_path):
    (tmp_path / "a.csv").write_text('q,a,messages\nWhat?,That.,\n,,"[{""role"": ""user""}]"\n')
    fields = {"instruction": "q", "output": "a", "input": "about"}
    items = list(read_folder(tmp_path, corpus(fields=fields), reading.Reading()))
    assert items[0].input == "What?"
    assert items[0].gold["text"] == "That."
    assert items[1].reason == "no message"


def test_a_text_is_for_pretraining_alone(tmp_path):
    (item,) = read_lines(tmp_path, {"text": "The sun is a star."})
    assert (item.input, item.gold) == ("The sun is a star.", None)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({"instruction": "a", "output": ""}, "missing answer"),
        ({"instruction": "a", "output": None}, "missing answer"),
        ({"instruction": "a"}, "missing answer"),
        ({"messages": [message("user", "a")]}, "missing answer"),
        ({"instruction": "a" * 2**20, "output": "b"}, "too long"),
        ({"instruction": "a", "output": "b" * 2**20}, "too long"),
        ({"instruction": "a", "output": "b\0"}, "NUL character"),
        ({"instruction": "a", "output": "\ud800"}, "lone surrogate"),
        ({"instruction": "a", "output": "b", "format": "haiku"}, "unknown format"),
        ({"instruction": 3, "output": "b"}, "wrong type"),
        ({"instruction": "a", "output": 3}, "no message"),
        ({"question": "a"}, "missing field"),
    ],
)
def test_an_unusable_line_is_rejected_with_its_reason(tmp_path, line, reason):
    (item,) = read_lines(tmp_path, line)
    assert isinstance(item, Reject)
    assert item.reason == reason
    assert len(item.detail) < 200
