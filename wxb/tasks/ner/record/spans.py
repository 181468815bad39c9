"""Typed spans of a text."""

from typing import NamedTuple


class Span(NamedTuple):
    """A type and the offsets [start, end) in code points, with 0 <= start < end (not checked)."""

    start: int
    end: int
    type: str
