"""Tables fit terminals of any width without a broken word."""

import io

import pytest
from rich.console import Console

from wxb.reporting.terminal import table

HEADER = ["stage", "parameters", "FLOPs", "memory"]
ROWS = [
    ("train@ner-decoder-bidirectional", "702,891", "4.0e+12", "644.0 MiB"),
    ("pretrain@encoder", "680,832", "2.7e+12", "671.0 MiB"),
]


@pytest.mark.parametrize("width", [66, 80, 200])
def test_no_word_is_broken_or_cut(width):
    screen = io.StringIO()
    Console(file=screen, width=width).print(table(HEADER, ROWS, numeric=True))
    text = screen.getvalue()
    assert max(map(len, text.splitlines())) <= width
    assert all(word in text.split() for row in ROWS for cell in row for word in cell.split())
