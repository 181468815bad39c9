"""Typed spans of a text."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Span(NamedTuple):
    """A type and the offsets [start, end) in code points, with 0 <= start < end (not checked)."""

    start: int
    end: int
    type: str


def paired_sets(
    gold: Sequence[Iterable[Span]], predicted: Sequence[Iterable[Span]]
) -> list[tuple[set[Span], set[Span]]]:
    """The sets of gold and predicted spans of each document, of which both have the same number."""
    return [(set(g), set(p)) for g, p in zip(gold, predicted, strict=True)]
