"""The table of a study on terminals of several widths."""

import io

import pytest
from rich.console import Console

from wxb.cli.listing import score_table

NAMES = ["ner-encoder", "ner-decoder-bidirectional"]
COLUMNS = [
    ["experiment", *NAMES],
    ["F1 (95% interval)", "0.852 (0.827–0.875)", "0.857 (0.832–0.881)"],
    ["situations: F1 (95% interval)", "0.818 (0.795–0.840)", "0.802 (0.767–0.835)"],
    ["precision", "0.844", "0.861"],
    ["recall", "0.860", "0.854"],
]


def lines(width):
    screen = io.StringIO()
    Console(file=screen, width=width).print(score_table(COLUMNS, 3, width))
    return screen.getvalue().splitlines()


@pytest.mark.parametrize(
    ("width", "last"), [(40, ""), (60, ""), (80, "precision"), (120, "recall")]
)
def test_columns_that_fit_are_complete(width, last):
    shown = lines(width)
    assert max(map(len, shown)) <= width
    text = "\n".join(shown)
    assert "…" not in text
    assert all(f"\n{name}" in f"\n{text}" for name in NAMES), "names are whole"
    for cell in (*COLUMNS[1][1:], *COLUMNS[2][1:]):
        assert all(part in text for part in cell.split())
    present = ["precision" in text, "recall" in text]
    assert present == {"": [False, False], "precision": [True, False], "recall": [True, True]}[last]


def test_a_row_is_one_line_if_the_required_columns_fit():
    row = next(line for line in lines(80) if line.startswith("ner-encoder"))
    assert "0.852 (0.827–0.875)  0.818 (0.795–0.840)" in row
    assert len([line for line in lines(60) if "0.827" in line or "ner-encoder" in line]) == 2
