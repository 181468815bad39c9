"""Edits of params.yaml: content is exact, and comments of blocks that stay survive."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wxb.core.errors import WxbError
from wxb.core.params import ParamsError
from wxb.project import params_file
from wxb.project.params_file import add_block, block_text, parse, to_yaml, update

ROOT = Path(__file__).parents[2]
PARAMS = (ROOT / "params.yaml").read_text(encoding="utf-8")
BLOCK = "mine:\n  task: ner\n  path: x.json\n  split: {test: 0.2, valid: 0.1}\n"

scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.text())
contents = st.recursive(
    st.one_of(scalars, st.lists(scalars)),
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from("xyz"), inner), st.lists(inner, max_size=2)
    ),
    max_leaves=8,
)
keys = st.sampled_from(["a", "b", "c", "a b", "1", "#", "ja", "no", "null"])
blocks = st.dictionaries(keys, contents, min_size=1)
files = st.dictionaries(st.sampled_from("xyz"), st.one_of(blocks, scalars), min_size=1)


@pytest.mark.parametrize("section", ["corpora", "backbones", "experiments", "studies", "lessons"])
def test_other_blocks_keep_their_bytes(section):
    text = add_block(PARAMS, section, BLOCK)
    added = "".join(f"  {line}\n" for line in BLOCK.splitlines())
    assert text.count(added) == 1
    assert text.replace(added, "") == PARAMS
    content = parse(text)
    assert [*content[section]][-1] == "mine"
    del content[section]["mine"]
    assert content == parse(PARAMS)
    assert update(text, content) == PARAMS


@pytest.mark.parametrize("empty", ["corpora:", "corpora: {}", "corpora: {}  # none yet"])
def test_the_first_block_of_a_section(empty):
    text = add_block(f"{empty}\n\nx: 1\n", "corpora", BLOCK)
    assert parse(text) == {"corpora": parse(BLOCK), "x": 1}
    assert text.endswith("\n\nx: 1\n")
    assert text.count("#") == empty.count("#")


def test_an_existing_block_is_not_overwritten():
    with pytest.raises(WxbError, match=r"corpus 'pii'.*another name"):
        add_block(PARAMS, "corpora", BLOCK.replace("mine", "pii"))


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        ("a: 1          # why\n", {"a": 100}, "a: 100        # why\n"),
        ("a: 1 # why\n", {"a": 100}, "a: 100 # why\n"),
        ("a: {b: 1}   # why\n", {"a": {"b": 1, "c": {"d": 2}}}, "a: {b: 1, c: {d: 2}} # why\n"),
        ("a: {}  # why\nb: 1\n", {"a": {"c": 2}, "b": 1}, "a:     # why\n  c: 2\nb: 1\n"),
        ("a:  # why\n  b: 1\n# x\nc: 1\n", {"a": {}, "c": 1}, "a: {} # why\n# x\nc: 1\n"),
        ("a:\n- 1\n- 2\n\nb: 1\n", {"a": [3], "b": 1}, "a:\n- 3\n\nb: 1\n"),
        ("a: 1  # why\nb: 2", {"a": None, "c": 3}, "a:    # why\nc: 3\n"),
        (
            "a:\n- 1 # why\n\n# b\nb: 2\n",
            {"a": [1, 2], "b": 2},
            "a:\n- 1 # why\n- 2\n\n# b\nb: 2\n",
        ),
        (
            "a:  # why\n  - b\n  - c\n  - d\ne: 1\n",
            {"a": ["b", "d"], "e": 1},
            "a:  # why\n- b\n- d\ne: 1\n",
        ),
        ("a:  # why\n  - b\n  - c\ne: 1\n", {"a": [], "e": 1}, "a: [] # why\ne: 1\n"),
        ("s:\n  a: {x: 1}\n  # b\n  b: 1\n\n# t\nt: 1\n", {"s": {"a": 1}, "t": 1}, None),
    ],
)
def test_comments_stay_beside_and_above_their_keys(before, content, after):
    assert update(before, content) == (after or "s:\n  a: 1\n\n# t\nt: 1\n")


def test_only_a_changed_value_is_replaced():
    content = parse(PARAMS)
    content["experiments"]["ner-encoder"]["corpus"] = "mine"
    line = "    corpus: pii                       # the labelled"
    assert update(PARAMS, content) == PARAMS.replace(line, line.replace("pii ", "mine"))


def test_a_shared_value_cannot_be_changed():
    with pytest.raises(ParamsError, match="write these values out"):
        update("a: &one {x: 1}\nb: *one\n", {"a": {"x": 1}, "b": {"x": 2}})


def test_a_block_has_its_comments():
    block = block_text(PARAMS, "experiments", "ner-generative")
    assert parse(block) == {"ner-generative": parse(PARAMS)["experiments"]["ner-generative"]}
    assert "# texts per batch" in block
    assert add_block("experiments: {}\n", "experiments", block).count("#") == block.count("#")
    with pytest.raises(ParamsError, match="ner-encoder"):
        block_text(PARAMS, "experiments", "ner-encodr")


def test_invalid_parameters_are_never_written(tmp_path):
    path = tmp_path / "params.yaml"
    path.write_text(PARAMS)
    with pytest.raises(ParamsError, match="split"):
        params_file.write(add_block(PARAMS, "corpora", "mine:\n  task: ner\n  path: x\n"), path)
    assert path.read_text() == PARAMS
    assert [*tmp_path.iterdir()] == [path]


@given(contents, st.text())
def test_yaml_parses_as_the_content(content, comment):
    assert parse(to_yaml({"a": {"b": content}}, {"a.b": comment})) == {"a": {"b": content}}


@given(files, files)
def test_any_content_can_become_any_other(before, after):
    text = to_yaml(before, dict.fromkeys(before, "why"))
    assert parse(update(text, after)) == after
    assert update(text, before) == text


def with_comments(blocks):
    """The text of a section with a comment above, in and beside each block."""
    lines = []
    for index, (name, value) in enumerate(blocks.items()):
        comments = {name: f"beside {name}", f"{name}.x": f"in {name}"}
        lines.append(f"# above {index}\n{to_yaml({name: {'x': value, 'y': 1}}, comments)}")
    return "s:\n" + "".join(f"  {line}\n" for line in "".join(lines).splitlines())


values = st.one_of(st.integers(), st.booleans(), st.lists(st.integers(), max_size=3))


@given(st.dictionaries(st.sampled_from("abcdef"), values, min_size=2), values, st.data())
def test_comments_keep_their_order_and_other_blocks_their_text(before, value, data):
    text = with_comments(before)
    content = parse(text)
    changed = data.draw(st.sampled_from(sorted(before)))
    others = before.keys() - {changed}
    content["s"][changed] |= {"x": value, "z": {"new": 1}}
    after = update(text, content)
    assert re.findall("#.*", after) == re.findall("#.*", text)
    assert all(block_text(after, "s", name) == block_text(text, "s", name) for name in others)
    del content["s"][changed]
    removed = update(after, content)
    assert all(f"# {place} {name}" in removed for name in others for place in ("beside", "in"))
    assert all(block_text(removed, "s", name) == block_text(text, "s", name) for name in others)
