"""Markdown tables on terminals of any width."""

import io
import re

import pytest
from rich.console import Console

from wxb.cli.markdown import TerminalMarkdown

NAMES = ["ner-decoder-lora", "ner-decoder-qlora", "ner-decoder-bidirectional"]
HEADER = ["experiment", "F1 (95% interval)", "situations: F1 (95% interval)", "precision", "gold"]
NUMBERS = ["0.852 (0.827–0.875)", "0.818 (0.795–0.840)", "0.844", "2,671"]
TABLE = "\n".join(
    "| " + " | ".join(cells) + " |"
    for cells in (HEADER, ["---", *["---:"] * 4], *([name, *NUMBERS] for name in NAMES))
)


def shown(width):
    out = io.StringIO()
    Console(file=out, width=width).print(TerminalMarkdown(TABLE))
    return out.getvalue()


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_table_is_wider_than_its_terminal_and_nothing_is_cut(width):
    text = shown(width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    for word in {*" ".join([*HEADER, *NUMBERS]).split(), "bidirectional", "qlora", "lora"}:
        assert re.search(rf"(^|[ -]){re.escape(word)}( |$)", text, re.MULTILINE), word


def test_a_row_is_one_line_if_it_fits():
    assert re.search(r"ner-decoder-lora +0\.852 \(0\.827–0\.875\) .* 2,671$", shown(120), re.M)


def test_columns_that_do_not_fit_are_below_with_the_names_repeated():
    assert shown(80).count("ner-decoder-qlora") == 1
    assert shown(40).count("experiment") > 1
