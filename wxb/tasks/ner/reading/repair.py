"""Repair wrong offsets of spans by their values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wxb.corpora.records import RecordError

TAKEN = "\0"  # replaces characters of spans; texts never contain it


def repair_offsets(
    text: str, offsets: Sequence[tuple[int, int]], values: Sequence[Any]
) -> tuple[list[tuple[int, int]], int]:
    """Offsets that select the values in a text, and how many of them are repaired.

    Correct offsets are kept. Any other value gets its occurrence nearest to the wrong start that is
    in no other span; longer values choose first, as they may contain shorter ones.

    Raises RecordError if a value does not occur, or not often enough.
    """
    repaired, free, wrong = list(offsets), text, []
    for index, ((start, end), value) in enumerate(zip(offsets, values, strict=True)):
        if 0 <= start < end <= len(text) and text[start:end] == value:
            free = free[:start] + TAKEN * (end - start) + free[end:]
        elif isinstance(value, str) and value.strip() and TAKEN not in value:
            wrong.append((-len(value), start, index))
        else:
            raise RecordError("value not found", f"{value!r} is no text to look for")
    for length, start, index in sorted(wrong):
        value, begin = values[index], max(start, 0)
        occurrences = free.rfind(value, 0, begin - length - 1), free.find(value, begin)
        nearest = min(
            (first for first in occurrences if first >= 0),
            key=lambda first: abs(first - begin),
            default=None,
        )
        if nearest is None:
            raise RecordError("value not found", f"{value!r}, stated to start at {start}")
        repaired[index] = nearest, nearest - length
        free = free[:nearest] + TAKEN * -length + free[nearest - length :]
    return repaired, len(wrong)
