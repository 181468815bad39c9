"""Blocks are added to params.yaml as text: what was there keeps its bytes."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from wxb.cli.new import edits
from wxb.errors import WxbError
from wxb.params import ParamsError

ROOT = Path(__file__).parents[3]
PARAMS = (ROOT / "params.yaml").read_text(encoding="utf-8")
BLOCK = "mine:\n  task: ner\n  path: x.json\n  split: {test: 0.2, valid: 0.1}\n"


def loaded(text):
    return YAML(typ="safe").load(text)


@pytest.mark.parametrize("section", ["corpora", "backbones", "experiments", "studies", "parity"])
def test_all_else_keeps_its_bytes(section):
    text = edits.with_block(PARAMS, section, BLOCK)
    added = "".join(f"  {line}\n" for line in BLOCK.splitlines())
    assert text.count(added) == 1
    assert text.replace(added, "") == PARAMS
    expected = loaded(PARAMS)
    expected[section]["mine"] = loaded(BLOCK)["mine"]
    assert loaded(text) == expected


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
    lines = edits.rendered({"corpora": blocks}, {"corpora": "all of them"})
    after = "# Next\nx: 1\n"
    text = edits.with_block(lines + gap + after, "corpora", BLOCK)
    assert loaded(text) == {"corpora": {**blocks, **loaded(BLOCK)}, "x": 1}
    of_block = gap if gap.startswith(" ") else ""
    assert text.startswith(lines + of_block)
    assert text.endswith(("" if of_block else gap) + after)


@pytest.mark.parametrize("nothing", ["corpora:", "corpora: {}", "corpora: {}  # none yet"])
def test_the_first_block_of_a_section(nothing):
    text = edits.with_block(f"{nothing}\nx: 1\n", "corpora", BLOCK)
    assert loaded(text) == {"corpora": loaded(BLOCK), "x": 1}


def test_line_ends_stay(tmp_path):
    path = tmp_path / "params.yaml"
    path.write_bytes(PARAMS.replace("\n", "\r\n").encode())
    text = edits.with_block(edits.read(path), "studies", BLOCK)
    assert text.count("\r\n") == PARAMS.count("\n")


def test_a_block_that_is_there_is_not_overwritten():
    with pytest.raises(WxbError, match=r"the corpus 'pii' already.*another name"):
        edits.with_block(PARAMS, "corpora", BLOCK.replace("mine", "pii"))
    with pytest.raises(WxbError, match=r"the study 'ner' already"):
        edits.with_block(PARAMS, "studies", BLOCK.replace("mine", "ner"))


def test_braces_are_told():
    with pytest.raises(WxbError, match=r"`corpora` is in braces"):
        edits.with_block("corpora: {a: {b: 1}}\n", "corpora", BLOCK)


@pytest.mark.parametrize(
    "listed", ["experiments:   # order\n    - a\n    - b   # last", "experiments: [a, b]  # order"]
)
def test_an_item_joins_its_list(listed):
    text = edits.with_item(
        f"s:\n  t:\n    {listed}\n\n# Next\nx: 1\n", ("s", "t", "experiments"), "c"
    )
    assert loaded(text) == {"s": {"t": {"experiments": ["a", "b", "c"]}}, "x": 1}
    assert "# order" in text
    assert text.endswith("\n\n# Next\nx: 1\n")


def test_a_value_is_replaced_and_nothing_else():
    text = edits.with_value(PARAMS, ("experiments", "ner-encoder", "corpus"), "mine")
    was = "    corpus: pii                       # trained"
    assert text == PARAMS.replace(was, was.replace("pii", "mine"))


def test_a_block_is_read_with_its_comments():
    block = edits.block(PARAMS, "experiments", "ner-generative")
    assert loaded(block) == {"ner-generative": loaded(PARAMS)["experiments"]["ner-generative"]}
    assert "# texts at a time" in block
    assert "ner-generative-neftune" not in block
    with pytest.raises(ParamsError, match="did you mean 'ner-encoder'"):
        edits.block(PARAMS, "experiments", "ner-encodr")


@given(contents)
def test_what_is_rendered_reads_the_same(content):
    assert loaded(edits.rendered({"a": {"b": content}}, {"a.b": "why"})) == {"a": {"b": content}}


def test_invalid_parameters_are_never_written(tmp_path):
    path = tmp_path / "params.yaml"
    path.write_text(PARAMS)
    with pytest.raises(ParamsError, match="split"):
        edits.write(edits.with_block(PARAMS, "corpora", "mine:\n  task: ner\n  path: x\n"), path)
    assert path.read_text() == PARAMS
    assert [*tmp_path.iterdir()] == [path]
