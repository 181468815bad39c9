"""Tables without a header: recognize them, and name their columns by their values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path

from wxb.corpora.formats import split_lines, split_rows
from wxb.corpora.layout import TABLES, decode, decode_table

Cells = Sequence[Sequence[str]]  # rows of equal length

MAX_HEADER = 5  # words of a name of a column
MIN_TEXT = 8  # mean characters of texts with a class; tokens with a tag are shorter
NUMBER = re.compile(r"[+-]?\d+([.,]\d+)*")
SENTENCE = re.compile(r"[.!?。！？]$")


def read_cells(file: Path) -> Cells:
    """The rows of a table, or the lines with tabs of another file, of the most frequent length.

    Empty if most rows have a single cell.
    """
    is_table = file.suffix.lower() in TABLES
    numbered = (
        split_rows(decode_table(file)[0], file.suffix) if is_table else split_lines(decode(file))
    )
    rows = [row for _, row in numbered]
    widths = Counter(map(len, rows))
    width = widths.most_common(1)[0][0] if widths else 0
    return [row for row in rows if len(row) == width] if width > 1 else []


def has_header(rows: Cells, known: Collection[str]) -> bool:
    """Whether the first row has names of columns: one of `known`, or none that is like a value.

    A value is a number, a sentence, longer than a name, or occurs again in its column.
    """
    first, rest = rows[0], rows[1:]
    if any(normalized(cell) in known for cell in first):
        return True
    repeated = any(row[index] == cell for index, cell in enumerate(first) if cell for row in rest)
    return not repeated and not any(map(_is_value, first))


def normalized(name: str) -> str:
    """The name of a field without case, spaces, `_` and `-`."""
    return re.sub(r"[\s_-]+", "", name).casefold()


def _is_value(cell: str) -> bool:
    cell = cell.strip()
    is_long = len(cell.split()) > MAX_HEADER or len(cell) > 60
    return is_long or bool(NUMBER.fullmatch(cell) or SENTENCE.search(cell))


def name_columns(rows: Cells, names: Sequence[str], indices: Sequence[int]) -> list[str]:
    """The names of all columns: the given ones at their indices, others by their number."""
    by_index = dict(zip(indices, names, strict=True))
    return [by_index.get(index, f"column {index + 1}") for index in range(len(rows[0]))]


def longest_column(rows: Cells, indices: Sequence[int]) -> int | None:
    """The index of the column with the longest texts; None if all are as short as tokens."""
    lengths = {index: sum(len(row[index]) for row in rows) / len(rows) for index in indices}
    index = max(lengths, key=lengths.__getitem__, default=None)
    return index if index is not None and lengths[index] >= MIN_TEXT else None
