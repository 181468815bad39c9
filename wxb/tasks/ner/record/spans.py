"""The unit that everything about entities is told in."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Span(NamedTuple):
    """A typed stretch of text: half-open offsets in code points, `0 <= start < end` (unchecked)."""

    start: int
    end: int
    type: str


def aligned(
    gold: Sequence[Iterable[Span]], predicted: Sequence[Iterable[Span]]
) -> list[tuple[set[Span], set[Span]]]:
    """The gold and predicted spans of each document as sets; ValueError where numbers differ."""
    if len(gold) != len(predicted):
        raise ValueError(
            f"found {len(predicted)} predicted documents, expected {len(gold)} as in gold"
        )
    return [(set(g), set(p)) for g, p in zip(gold, predicted, strict=True)]
