"""Edits of params.yaml: content is exact, and other blocks keep their bytes and comments."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.demo import TEXT, without_own_blocks
from wxb.core.params import ParamsError
from wxb.core.params import parse_yaml as parse
from wxb.project import params_file
from wxb.project.params_file import to_yaml, update

BLOCK = "mine:\n  task: ner\n  path: x.json\n  split: {test: 0.2, valid: 0.1}\n"

scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.text())
contents = st.recursive(
    st.one_of(scalars, st.lists(scalars)),
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from("xyz"), inner), st.lists(inner, max_size=2)
    ),
    max_leaves=8,
)
keys = st.sampled_from(["a", "b", "c", "a b", "1", "#", "ja", "no", "null"]) | st.text(min_size=1)
blocks = st.dictionaries(keys, contents, min_size=1)
files = st.dictionaries(st.sampled_from("xyz"), st.one_of(blocks, scalars), min_size=1)


@pytest.mark.parametrize("section", ["corpora", "backbones", "experiments", "studies", "lessons"])
def test_other_blocks_keep_their_bytes(section):
    content = parse(TEXT)
    content[section] |= parse(BLOCK)
    text = update(TEXT, content)
    added = "".join(f"  {line}\n" for line in BLOCK.splitlines())
    assert text.count(added) == 1
    assert text.replace(added, "") == TEXT
    assert update(text, parse(TEXT)) == without_own_blocks(text) == TEXT


@pytest.mark.parametrize("empty", ["corpora:", "corpora: {}", "corpora: {}  # none yet"])
def test_the_first_block_of_a_section(empty):
    text = update(f"{empty}\n\nx: 1", {"corpora": parse(BLOCK), "x": 1})
    assert text.endswith("\n\nx: 1\n")
    assert text.count("#") == empty.count("#")


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        ("a: 1          # why\n", {"a": 100}, "a: 100        # why\n"),
        ("a: {}  # why\nb: 1\n", {"a": {"c": 2}, "b": 1}, "a:     # why\n  c: 2\nb: 1\n"),
        ("a:\n- 1\n- 2\n\nb: 1\n", {"a": [3], "b": 1}, "a:\n- 3\n\nb: 1\n"),
        (
            "a:\n- 1 # why\n\n# b\nb: 2\n",
            {"a": [1, 2], "b": 2},
            "a:\n- 1 # why\n- 2\n\n# b\nb: 2\n",
        ),
        ("s:\n  a: {x: 1}\n  # b\n  b: 1\n\n# t\nt: 1\n", {"s": {"a": {"x": 1}}, "t": 1},
         "s:\n  a: {x: 1}\n  # b\n\n# t\nt: 1\n"),
    ],
)  # fmt: skip
def test_comments_stay_beside_and_above_their_keys(before, content, after):
    assert update(before, content) == after


def test_only_a_changed_value_is_replaced():
    content = parse(TEXT)
    content["experiments"]["ner-encoder"]["corpus"] = "mine"
    line = "    corpus: pii                       # the labelled"
    assert update(TEXT, content) == TEXT.replace(line, line.replace("pii ", "mine"))


def test_a_shared_value_cannot_be_changed():
    with pytest.raises(ParamsError, match="write these values out"):
        update(
            "a:\n  x: &one {x: 1}\nb:\n  x: *one\n", {"a": {"x": {"x": 1}}, "b": {"x": 2, "y": 3}}
        )


def test_invalid_parameters_are_never_written(cwd):
    path = cwd / "params.yaml"
    path.write_text(TEXT)
    content = parse(TEXT)
    content["corpora"]["pii"]["splitt"] = {}
    with pytest.raises(ParamsError, match="splitt"):
        params_file.write(content)
    assert path.read_text() == TEXT
    assert [*cwd.iterdir()] == [path]


@given(files, files)
def test_any_content_can_become_any_other(before, after):
    assert parse(update(to_yaml(before), after)) == after


values = st.one_of(st.integers(), st.booleans(), st.lists(st.integers(), max_size=3))


@given(st.dictionaries(st.sampled_from("abcdef"), values, min_size=2), values, st.data())
def test_other_blocks_keep_their_comments(before, value, data):
    parts = {
        name: f"  # above {name}\n  {name}:  # beside\n    x: {value}  # in\n    y: 1\n"
        for name, value in before.items()
    }
    text = "s:\n" + "".join(parts.values())
    content = parse(text)
    changed = data.draw(st.sampled_from(sorted(before)))
    content["s"][changed] |= {"x": value, "z": {"new": 1}}
    after = update(text, content)
    assert re.findall("#.*", after) == re.findall("#.*", text)
    del content["s"][changed]
    removed = update(after, content)
    for name in before.keys() - {changed}:
        assert parts[name] in after
        assert parts[name] in removed
