"""Records never add keys to params.yaml: `wxb new corpus` quotes what it copies from them."""

import json
from pathlib import Path

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from wxb.cli.new.corpus import new_corpus
from wxb.core.errors import WxbError
from wxb.core.params import parse_yaml as parse
from wxb.project.params_file import update
from wxb.tasks.recognition import FlagError

PROJECT = "corpora:\n  pii:\n    task: ner\nbackbones: {}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def keys(content):
    """The nested keys of a mapping."""
    return {k: keys(v) for k, v in content.items()} if isinstance(content, dict) else None


def keys_with_corpus(rows):
    """The keys of params.yaml with the corpus of some records."""
    Path("mail.json").write_text(json.dumps(rows))
    content = parse(PROJECT)
    content["corpora"]["mail"] = new_corpus(Path("mail.json"))[0]
    return keys(parse(update(PROJECT, content)))


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


def test_labels_with_line_feeds_are_rejected():
    with pytest.raises(WxbError, match="every record"):
        keys_with_corpus(classified(["x\n    generate:\n #"], "author"))


@pytest.mark.parametrize("make", [classified, spans])
@given(
    names=st.lists(st.text(min_size=1, max_size=40), min_size=2, max_size=2, unique=True),
    field=st.text(min_size=1, max_size=300),
)
def test_any_names_give_the_keys_of_harmless_ones(make, names, field):
    reserved = ("text", "label", "spans")
    names = ["a", "b", *(f"{name}{'_' * (name in reserved)}" for name in names)]
    expected = keys_with_corpus(make(["a", "b", "c", "d"], "author"))
    try:
        found = keys_with_corpus(make(names, field + "_" * (field in reserved)))
    except FlagError:  # a known name, such as INPUT beside `text`: nothing is written
        reject()
    found["corpora"]["mail"]["fields"].pop("id", None)  # the field may be called so
    found["corpora"]["mail"]["fields"].pop("language", None)
    assert found == expected
