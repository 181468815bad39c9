"""Tables fit terminals of any width without a broken word."""

import io

import pytest
from rich.console import Console

from wxb.reporting.terminal import fitted, table

HEADER = ["stage", "parameters", "FLOPs", "memory"]
ROWS = [
    ("train@ner-decoder-bidirectional", "702,891", "4.0e+12", "644.0 MiB"),
    ("pretrain@encoder", "680,832", "2.7e+12", "671.0 MiB"),
]


@pytest.mark.parametrize("width", [66, 80, 200])
def test_no_word_is_broken_or_cut(width):
    screen = io.StringIO()
    Console(file=screen, width=width).print(table(HEADER, ROWS, numbers=True))
    text = screen.getvalue()
    assert max(map(len, text.splitlines())) <= width
    assert all(word in text.split() for row in ROWS for cell in row for word in cell.split())


@pytest.mark.parametrize(("width", "last"), [(50, ""), (60, "FLOPs"), (80, "memory")])
def test_columns_that_are_not_required_are_left_out_if_they_do_not_fit(width, last):
    screen = io.StringIO()
    part, hidden = fitted(HEADER, ROWS, required=2, width=width)
    Console(file=screen, width=width).print(part)
    lines = screen.getvalue().splitlines()
    assert (len(lines), max(map(len, lines)) <= width) == (2 + len(ROWS), True)
    assert [*lines[0].split(), *hidden] == HEADER
    assert len(hidden) == 2 - bool(last) - (last == "memory")
