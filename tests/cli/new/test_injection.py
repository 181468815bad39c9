"""Records never add keys to params.yaml: `wxb new corpus` escapes what it copies from them."""

import json
from pathlib import Path

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from wxb.cli.new.corpus import new_corpus
from wxb.project.params_file import add_block, parse
from wxb.tasks.recognition import FlagError

PROJECT = "corpora:\n  pii:\n    task: ner\nbackbones: {}\n"
INJECTED = ["x\n    generate:\n #", "y\n      labelled: 1 #", "z\r      languages:\x85 []"]
STRINGS = st.lists(st.text(min_size=1, max_size=40), min_size=2, max_size=2, unique=True)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def keys(content):
    """The nested keys of a mapping."""
    if not isinstance(content, dict):
        return None
    return {key: keys(value) for key, value in content.items()}


def keys_with_corpus(rows):
    """The keys of params.yaml with the corpus of some records, and the lines that it adds."""
    Path("mail.json").write_text(json.dumps(rows))
    text = add_block(PROJECT, "corpora", new_corpus(Path("mail.json"), None).block)
    return keys(parse(text)), max(map(len, text.splitlines()))


def classified(labels, field):
    return [
        {"text": f"Ann wrote {n}.", "label": labels[n % len(labels)], field: f"group {n // 2}"}
        for n in range(60)
    ]


def spans(types, field):
    return [
        {"text": f"Ann wrote {n}.", field: "x", "spans": [{"start": 0, "end": 3, "label": type_}]}
        for n, type_ in enumerate(types * 15)
    ]


def messages(roles, field):
    turns = [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "Ann."}]
    return [
        {"id": n, "messages": [{**turn, role: field} for turn in turns]}
        for n, role in enumerate(roles * 15)
    ]


def test_labels_with_line_feeds_add_no_generator():
    harmless = keys_with_corpus(classified("abc", "author"))
    assert keys_with_corpus(classified(INJECTED, "author"))[0] == harmless[0]


@pytest.mark.parametrize("make", [classified, spans, messages])
@given(names=STRINGS, field=st.text(min_size=1, max_size=300))
def test_any_names_give_the_keys_of_harmless_ones(make, names, field):
    reserved = ("text", "label", "spans", "role", "content", "messages", "start", "end", "id")
    names = ["a", "b", *(f"{name}{'_' * (name in reserved)}" for name in names)]
    field += "_" * (field in reserved)
    expected, _ = keys_with_corpus(make(["a", "b", "c", "d"], "author"))
    try:
        found, longest = keys_with_corpus(make(names, field))
    except FlagError:  # a known name, such as INPUT beside `text`: nothing is written
        reject()
    assert found == expected
    assert longest < 1000
