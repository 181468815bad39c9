"""Edits of params.yaml as text: what does not change keeps its bytes."""

import re
from copy import deepcopy
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wxb.core.errors import WxbError
from wxb.core.params import ParamsError
from wxb.project import params_file
from wxb.project.params_file import inline_yaml, parse, to_yaml, update

ROOT = Path(__file__).parents[2]
PARAMS = (ROOT / "params.yaml").read_text(encoding="utf-8")
BLOCK = "mine:\n  task: ner\n  path: x.json\n  split: {test: 0.2, valid: 0.1}\n"


@pytest.mark.parametrize("section", ["corpora", "backbones", "experiments", "studies", "lessons"])
def test_other_blocks_keep_their_bytes(section):
    text = params_file.add_block(PARAMS, section, BLOCK)
    added = "".join(f"  {line}\n" for line in BLOCK.splitlines())
    assert text.count(added) == 1
    assert text.replace(added, "") == PARAMS
    expected = parse(PARAMS)
    expected[section]["mine"] = parse(BLOCK)["mine"]
    assert parse(text) == expected


scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.text())
contents = st.recursive(
    st.one_of(scalars, st.lists(scalars)),
    lambda inner: st.dictionaries(st.sampled_from("xyz"), inner),
    max_leaves=8,
)
# A blank line and a comment at the left belong to what comes after them.
gaps = st.sampled_from(["", "\n", "\n# What comes next\n", "# Next\n", "    # of the block\n"])


@given(st.dictionaries(st.sampled_from("abc"), contents, min_size=1), gaps)
def test_a_block_follows_the_last_one(blocks, gap):
    lines = to_yaml({"corpora": blocks}, {"corpora": "all of them"})
    after = "# Next\nx: 1\n"
    text = params_file.add_block(lines + gap + after, "corpora", BLOCK)
    assert parse(text) == {"corpora": {**blocks, **parse(BLOCK)}, "x": 1}
    of_block = gap if gap.startswith(" ") else ""
    assert text.startswith(lines + of_block)
    assert text.endswith(("" if of_block else gap) + after)


@pytest.mark.parametrize("nothing", ["corpora:", "corpora: {}", "corpora: {}  # none yet"])
def test_the_first_block_of_a_section(nothing):
    text = params_file.add_block(f"{nothing}\nx: 1\n", "corpora", BLOCK)
    assert parse(text) == {"corpora": parse(BLOCK), "x": 1}


def test_line_ends_are_kept(tmp_path):
    path = tmp_path / "params.yaml"
    path.write_bytes(PARAMS.replace("\n", "\r\n").encode())
    text = params_file.add_block(params_file.read(path), "studies", BLOCK)
    assert text.count("\r\n") == PARAMS.count("\n")


def test_an_existing_block_is_not_overwritten():
    with pytest.raises(WxbError, match=r"the corpus 'pii' already.*another name"):
        params_file.add_block(PARAMS, "corpora", BLOCK.replace("mine", "pii"))
    with pytest.raises(WxbError, match=r"the study 'ner' already"):
        params_file.add_block(PARAMS, "studies", BLOCK.replace("mine", "ner"))


def test_a_section_in_braces_is_an_error():
    with pytest.raises(WxbError, match=r"`corpora` is in braces"):
        params_file.add_block("corpora: {a: {b: 1}}\n", "corpora", BLOCK)


@pytest.mark.parametrize(
    "entry", ["experiments:   # order\n    - a\n    - b   # last", "experiments: [a, b]  # order"]
)
def test_an_item_is_appended_to_its_list(entry):
    text = update(
        f"s:\n  t:\n    {entry}\n\n# Next\nx: 1\n",
        {"s": {"t": {"experiments": ["a", "b", "c"]}}, "x": 1},
    )
    assert all(line in text for line in entry.replace("b]  #", "b, c] #").splitlines())
    assert text.endswith("\n\n# Next\nx: 1\n")


def test_only_a_changed_value_is_replaced():
    content = parse(PARAMS)
    content["experiments"]["ner-encoder"]["corpus"] = "mine"
    line = "    corpus: pii                       # the labelled"
    assert update(PARAMS, content) == PARAMS.replace(line, line.replace("pii ", "mine"))


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        ("a: 1          # why\n", {"a": 100}, "a: 100        # why\n"),
        ("a: 1 # why\n", {"a": 100}, "a: 100 # why\n"),
        ("a: {b: 1, c: '#'}  # why\n", {"a": {"b": 20, "c": "#"}}, "a: {b: 20, c: '#'} # why\n"),
        ("a: {b: 1}   # why\n", {"a": {"b": 1, "c": {"d": 2}}}, "a: {b: 1, c: {d: 2}} # why\n"),
        ("a: {}  # why\nb: 1\n", {"a": {"c": 2}, "b": 1}, "a:     # why\n  c: 2\nb: 1\n"),
        ("a:  # why\n  b: 1\n# x\nc: 1\n", {"a": {}, "c": 1}, "a: {} # why\n# x\nc: 1\n"),
        ("a:\n- 1\n- 2\nb: 1\n", {"a": [3], "b": 1}, "a: [3]\nb: 1\n"),
        ("a: |\n  one\n  two\n\nb: 1\n", {"a": "x", "b": 1}, "a: x\n\nb: 1\n"),
        ("a: 1  # why\nb: 2", {"a": None, "c": 3}, "a:    # why\nc: 3\n"),
    ],
)
def test_layout_is_kept(before, content, after):
    assert update(before, content) == after


def test_comments_around_a_removed_block_are_kept():
    text = "s:\n  # of a\n  a:\n    x: 1\n    # of x\n  # of b\n\n  b: {x: 1}\n# of t\nt: 1\n"
    assert update(text, {"s": {"b": {"x": 1}}, "t": 1}) == (
        "s:\n  # of a\n  # of b\n\n  b: {x: 1}\n# of t\nt: 1\n"
    )


def test_a_shared_value_cannot_be_changed():
    with pytest.raises(ParamsError, match="write these values out"):
        update("a: &one {x: 1}\nb: *one\n", {"a": {"x": 1}, "b": {"x": 2}})


def test_a_block_has_its_comments():
    block = params_file.block_text(PARAMS, "experiments", "ner-generative")
    assert parse(block) == {"ner-generative": parse(PARAMS)["experiments"]["ner-generative"]}
    assert "# texts per batch" in block
    assert "ner-generative-neftune" not in block
    with pytest.raises(ParamsError, match="did you mean 'ner-encoder'"):
        params_file.block_text(PARAMS, "experiments", "ner-encodr")


@given(contents)
def test_yaml_parses_as_the_content(content):
    assert parse(to_yaml({"a": {"b": content}}, {"a.b": "why"})) == {"a": {"b": content}}


def test_invalid_parameters_are_never_written(tmp_path):
    path = tmp_path / "params.yaml"
    path.write_text(PARAMS)
    with pytest.raises(ParamsError, match="split"):
        params_file.write(
            params_file.add_block(PARAMS, "corpora", "mine:\n  task: ner\n  path: x\n"), path
        )
    assert path.read_text() == PARAMS
    assert [*tmp_path.iterdir()] == [path]


keys = st.sampled_from(["a", "b", "c", "a b", "1", "#", "ja", "no"])
blocks = st.dictionaries(keys, contents, min_size=1)
files = st.dictionaries(st.sampled_from("xyz"), st.one_of(blocks, scalars), min_size=1)
layouts = st.sampled_from(
    [to_yaml, lambda c: "".join(f"{k}: {inline_yaml(c[k])}  # {k}\n" for k in c)]
)


@given(files, files, layouts)
def test_any_content_can_become_any_other(before, after, layout):
    assert parse(update(layout(before), after)) == after


@given(files, layouts)
def test_an_unchanged_content_keeps_its_text(content, layout):
    text = layout(content)
    assert update(text, deepcopy(content)) == text


def commented(blocks):
    """The text of a section with a comment above, in and beside each block."""
    lines = []
    for index, (name, value) in enumerate(blocks.items()):
        comments = {name: f"beside {index}", f"{name}.x": f"in {index}"}
        lines.append(f"# above {index}\n{to_yaml({name: {'x': value, 'y': 1}}, comments)}")
    return "s:\n" + "".join(f"  {line}\n" for line in "".join(lines).splitlines())


values = st.one_of(st.integers(), st.booleans(), st.lists(st.integers(), max_size=3))


@given(st.dictionaries(st.sampled_from("abcdef"), values, min_size=2), values, st.data())
def test_comments_keep_their_order_and_other_blocks_their_bytes(before, value, data):
    text, content = commented(before), parse(commented(before))
    changed = data.draw(st.sampled_from(sorted(before)))
    content["s"][changed] |= {"x": value, "z": {"new": 1}}
    after = update(text, content)
    assert re.findall("#.*", after) == re.findall("#.*", text)
    for name in before.keys() - {changed}:
        assert params_file.block_text(after, "s", name) == params_file.block_text(text, "s", name)
    del content["s"][changed]
    removed = update(after, content)
    assert parse(removed) == content
    assert re.findall("# above.*", removed) == re.findall("# above.*", text)
    for name in before.keys() - {changed}:
        assert params_file.block_text(removed, "s", name) == params_file.block_text(text, "s", name)


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_comments_keep_their_column_if_there_is_room(before, after):
    text = to_yaml({"s": {"a": before}}, {"s.a": "why"})
    assert update(text, {"s": {"a": after}}) == to_yaml({"s": {"a": after}}, {"s.a": "why"})
