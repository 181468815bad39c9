"""Typed spans of a text."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Span(NamedTuple):
    """A type and the offsets [start, end) in code points, with 0 <= start < end (not checked)."""

    start: int
    end: int
    type: str


def f1(gold: Sequence[Iterable[Span]], predicted: Sequence[Iterable[Span]]) -> float:
    """Micro F1 of the spans of texts; 0 without spans. Duplicates in a text count once."""
    pairs = [({*g}, {*p}) for g, p in zip(gold, predicted, strict=True)]
    total = sum(len(g) + len(p) for g, p in pairs)
    return 2 * sum(len(g & p) for g, p in pairs) / total if total else 0.0
