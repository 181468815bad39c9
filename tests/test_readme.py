"""The READMEs say what is so, and both say the same: their generated parts are fresh."""

import re
from pathlib import Path

import pytest

from wxb.errors import WxbError
from wxb.readme import READMES, refreshed

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("path", READMES, ids=str)
def test_generated_parts_are_fresh(path):
    text = path.read_text(encoding="utf-8")
    assert text == refreshed(text), "run `wxb readme`"
    assert "| ner-encoder |" in text
    assert "| `pretrain` | backbones |" in text


def test_both_have_the_same_commands_and_headings():
    english, chinese = (path.read_text(encoding="utf-8") for path in READMES)
    fence = re.compile(r"```.*?```", re.DOTALL)
    assert fence.findall(english) == fence.findall(chinese)
    heading = re.compile(r"^#+ ", re.MULTILINE)
    assert heading.findall(english) == heading.findall(chinese)


def test_unknown_block_is_named():
    with pytest.raises(WxbError, match="wether"):
        refreshed("<!-- generated: wether -->\n<!-- end -->")
