"""README.md says what is so: its generated parts are fresh."""

from pathlib import Path

import pytest

from wxb.errors import WxbError
from wxb.readme import refreshed

README = Path(__file__).parents[1] / "README.md"


@pytest.fixture(autouse=True)
def _at_the_root(monkeypatch):
    monkeypatch.chdir(README.parent)


def test_generated_parts_are_fresh():
    text = README.read_text(encoding="utf-8")
    assert text == refreshed(text), "run `wxb readme`"
    assert "| ner-encoder |" in text
    assert "| `pretrain` | backbones |" in text


def test_unknown_block_is_named():
    with pytest.raises(WxbError, match="wether"):
        refreshed("<!-- generated: wether -->\n<!-- end -->")
