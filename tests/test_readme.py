"""The READMEs say what is so, and both say the same: their generated parts are fresh."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from wxb.errors import WxbError
from wxb.project import revisions
from wxb.project.readme import READMES, refreshed

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("path", READMES, ids=str)
def test_generated_parts_are_fresh(path):
    try:
        revisions.index()
    except WxbError as error:
        pytest.skip(f"there are no committed results to compare with: {error}")
    text = path.read_text(encoding="utf-8")
    assert text == refreshed(text), "run `wxb readme`"
    assert "| ner-encoder |" in text
    assert "| experiment | seed 1 | seed 2 | seed 3 |" in text
    assert "| pretrained |" in text
    assert "| `pretrain` | backbones |" in text


CODE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
KINDS = (
    ("blank", r"\s*$"),
    ("heading", r"#+ "),
    ("item", r"- "),
    ("row", r"\|"),
    ("comment", r"<!--"),
    ("text", r""),
)
LINK = re.compile(r"\]\(([^)]+)\)")
INLINE = re.compile(r"`([^`]+)`")
FIGURE = re.compile(r"[−+-]?\d[\d.,]*\d|[−+-]?\d")


class Line(NamedTuple):
    """What both languages share of a line: all but its words."""

    kind: str
    level: int  # of a heading, or the cells of a row
    links: tuple[str, ...]
    code: tuple[str, ...]
    figures: tuple[str, ...]


def shared(text):
    """What a README shares with the other, line by line; of lines of links to each other, nothing.

    Links, code and figures count in any order, as languages put them where they must.
    """
    return [_shared(line) for line in CODE.sub("", text).splitlines()]


def _shared(line):
    kind = next(name for name, start in KINDS if re.match(start, line))
    words = INLINE.sub("", LINK.sub("]", line))
    links = [link for link in LINK.findall(line) if link not in map(str, READMES)]
    marks = {"heading": line.partition(" ")[0], "row": line}
    return Line(
        kind,
        len(re.findall(r"[#|]", marks.get(kind, ""))),
        tuple(sorted(links)),
        tuple(sorted(INLINE.findall(line))),
        tuple(sorted(FIGURE.findall(words))),
    )


def test_both_say_the_same():
    english, chinese = (path.read_text(encoding="utf-8") for path in READMES)
    assert CODE.findall(english) == CODE.findall(chinese)
    assert shared(english) == shared(chinese)
    assert {line.kind for line in shared(english)} == {name for name, _ in KINDS}


@pytest.mark.parametrize(
    ("found", "other"),
    [
        ("## A", "### A"),
        ("- one", "one"),
        ("| a | b |", "| a |"),
        ("see [x](a.md)", "see [x](b.md)"),
        ("set `a`", "set `b`"),
        ("F1 is 0.944 (−0.01 to +0.02)", "F1 是 0.944（−0.01 到 +0.03）"),
        ("one\n\ntwo", "one"),
        ("one\n\ntwo", "one\ntwo"),
    ],
)
def test_a_difference_shows(found, other):
    assert shared(found) != shared(other)


def test_words_and_their_order_may_differ():
    assert shared("Of 8,023, 5 are `a`, and 3 [b](b.md).") == shared(
        "[乙](b.md) 3、`a` 5（8,023）。"
    )


def test_what_links_to_files_of_the_project_finds_them():
    targets = {link for path in READMES for link in LINK.findall(path.read_text(encoding="utf-8"))}
    inside = {target for target in targets if not target.startswith("https:")}
    assert {"docs/errata.md", "docs/adding-a-corpus.md", "docs/adding-an-experiment.md"} <= inside
    assert [target for target in inside if not Path(target).exists()] == []


def test_unknown_block_is_named():
    with pytest.raises(WxbError, match="wether"):
        refreshed("<!-- generated: wether -->\n<!-- end -->")
