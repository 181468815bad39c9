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
    repaired = list(offsets)
    free = text
    wrong = []
    for index, ((start, end), value) in enumerate(zip(offsets, values, strict=True)):
        if 0 <= start < end <= len(text) and text[start:end] == value:
            free = _without(free, start, end)
        elif isinstance(value, str) and value.strip() and TAKEN not in value:
            wrong.append((-len(value), start, index))
        else:
            raise RecordError("value not found", f"{value!r} is no text to look for")
    for _, start, index in sorted(wrong):
        value = values[index]
        if (nearest := _nearest(free, value, start)) is None:
            raise RecordError("value not found", f"{value!r}, stated to start at {start}")
        repaired[index] = nearest, nearest + len(value)
        free = _without(free, *repaired[index])
    return repaired, len(wrong)


def _without(text: str, start: int, end: int) -> str:
    return text[:start] + TAKEN * (end - start) + text[end:]


def _nearest(text: str, value: str, start: int) -> int | None:
    """The start of the occurrence of `value` nearest to `start`, the earlier of two."""
    start = max(start, 0)
    before = text.rfind(value, 0, start + len(value) - 1)
    after = text.find(value, start)
    candidates = [candidate for candidate in (before, after) if candidate >= 0]
    return min(candidates, key=lambda candidate: abs(candidate - start), default=None)
