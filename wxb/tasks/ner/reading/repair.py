"""Find the spans of a record by their values, where offsets are wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wxb.corpora.records import RecordError

TAKEN = "\0"  # no text that gets here holds one


def by_value(
    text: str, stretches: Sequence[tuple[int, int]], values: Sequence[Any]
) -> tuple[list[tuple[int, int]], int]:
    """The stretches of `text` that select `values`, and how many are not the stated ones.

    Stretches that do select their values stay. Any other value is looked for: the occurrence
    nearest to its stated start that no other value takes. Longer values choose first, for a
    shorter one may stand inside them.

    Raises RecordError when a value does not occur (often enough).
    """
    found = list(stretches)
    free = text
    wrong = []
    for number, ((start, end), value) in enumerate(zip(stretches, values, strict=True)):
        if 0 <= start < end <= len(text) and text[start:end] == value:
            free = _without(free, start, end)
        elif isinstance(value, str) and value.strip() and TAKEN not in value:
            wrong.append((-len(value), start, number))
        else:
            raise RecordError("value not found", f"{value!r} is no text to look for")
    for _, start, number in sorted(wrong):
        value = values[number]
        if (at := _nearest(free, value, start)) is None:
            raise RecordError("value not found", f"{value!r}, stated to start at {start}")
        found[number] = at, at + len(value)
        free = _without(free, *found[number])
    return found, len(wrong)


def _without(text: str, start: int, end: int) -> str:
    return text[:start] + TAKEN * (end - start) + text[end:]


def _nearest(text: str, value: str, start: int) -> int | None:
    """Where the occurrence of `value` nearest to `start` begins, the earlier of two."""
    start = max(start, 0)
    before = text.rfind(value, 0, start + len(value) - 1)
    after = text.find(value, start)
    places = [place for place in (before, after) if place >= 0]
    return min(places, key=lambda place: abs(place - start), default=None)
