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


def shown(width):
    screen = io.StringIO()
    Console(file=screen, width=width).print(table(HEADER, ROWS, numbers=True))
    return screen.getvalue()


@pytest.mark.parametrize("width", [40, 55, 60, 80, 200])
def test_no_word_is_broken_or_cut(width):
    text = shown(width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    words = text.split()
    assert all(word in words for row in ROWS for cell in row for word in cell.split())


def test_a_table_that_is_too_wide_becomes_a_list():
    first, second, *_ = shown(40).splitlines()
    assert first.strip() == "train@ner-decoder-bidirectional"
    assert second.startswith("  parameters: 702,891   FLOPs: 4.0e+12")
    assert len(shown(80).splitlines()) == 4
