"""Markdown tables on terminals of any width."""

import io

import pytest
from rich.console import Console

from wxb.cli.markdown import TerminalMarkdown

TABLE = """
| experiment | F1 (95% interval) | situations: F1 | gold |
|---|---:|---:|---:|
| ner-decoder-bidirectional | 0.852 (0.827–0.875) | 0.818 (0.795–0.840) | 2,671 |
"""


@pytest.mark.parametrize("width", [80, 120])
def test_no_table_is_wider_than_its_terminal_and_nothing_is_cut(width):
    out = io.StringIO()
    Console(file=out, width=width).print(TerminalMarkdown(TABLE))
    text = out.getvalue()
    assert max(map(len, text.splitlines())) <= width
    for word in ("ner-decoder-bidirectional", "0.852", "(0.827–0.875)", "(0.795–0.840)", "2,671"):
        assert word in text
