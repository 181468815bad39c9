"""Tables of Markdown on terminals of any width."""

import io
import re

import pytest
from rich.console import Console

from wxb.cli.markdown import Terminal

NAMES = ["ner-decoder-lora", "ner-decoder-qlora", "ner-decoder-bidirectional"]
HEADER = ["experiment", "F1 (95% interval)", "situations: F1 (95% interval)", "precision", "gold"]
NUMBERS = ["0.852 (0.827–0.875)", "0.818 (0.795–0.840)", "0.844", "2,671"]
TABLE = "\n".join(
    "| " + " | ".join(cells) + " |"
    for cells in (HEADER, ["---", *["---:"] * 4], *([name, *NUMBERS] for name in NAMES))
)


def shown(width):
    out = io.StringIO()
    Console(file=out, width=width).print(Terminal(TABLE))
    return out.getvalue()


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_table_is_wider_than_its_terminal_and_nothing_is_cut(width):
    told = shown(width)
    assert max(map(len, told.splitlines())) <= width
    assert "…" not in told
    for word in {*" ".join([*HEADER, *NUMBERS]).split(), "bidirectional", "qlora", "lora"}:
        assert re.search(rf"(^|[ -]){re.escape(word)}( |$)", told, re.MULTILINE), word


def test_a_row_is_a_line_where_there_is_room():
    assert re.search(r"ner-decoder-lora +0\.852 \(0\.827–0\.875\) .* 2,671$", shown(120), re.M)


def test_columns_without_room_stand_below_with_the_names_again():
    assert shown(80).count("ner-decoder-qlora") == 1
    assert shown(40).count("experiment") > 1
