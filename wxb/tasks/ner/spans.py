"""The unit that everything about entities is told in."""

from typing import NamedTuple


class Span(NamedTuple):
    """A typed stretch of text: half-open offsets in code points, `0 <= start < end` (unchecked)."""

    start: int
    end: int
    type: str
