"""Test texts with the words marked that decided."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from wxb.tasks.classification.metrics import Judged

NUMBER = 6  # texts of each system: wrong ones and right ones in turn
LONGEST = 600  # characters of a text that are shown
DEEPEST = 62  # percent of colour of what weighs most


class Piece(NamedTuple):
    """A stretch of a text and what it weighs, in percent of colour: for the class, or against."""

    text: str
    depth: int
    speaks_for: bool


class Example(NamedTuple):
    """A text, its class, the predicted one and how likely that is, and its words."""

    id: str
    gold: str
    predicted: str
    probability: float
    pieces: list[Piece]


def examples(rows: Sequence[Judged], number: int = NUMBER) -> list[Example]:
    """Up to so many of the texts of which it was told what decided."""
    told = [row for row in rows if row.evidence is not None]
    wrong = [row for row in told if row.gold != row.predicted][: number // 2]
    right = [row for row in told if row.gold == row.predicted]
    return [
        Example(
            row.id,
            row.gold,
            row.predicted,
            row.probabilities[row.predicted],
            pieces(row.input[:LONGEST], row.evidence or ()),
        )
        for row in [*wrong, *right][:number]
    ]


def pieces(text: str, evidence: Sequence[tuple[int, int, float]]) -> list[Piece]:
    """A text cut where stretches begin and end; those that overlap are summed.

    What stands for several words is shared out among them.
    """
    inside = [one for one in evidence if one[1] <= len(text)]
    edges = sorted({0, len(text), *(edge for start, end, _ in inside for edge in (start, end))})
    weights = [
        sum(
            weight / len(text[first:last].split())
            for first, last, weight in inside
            if first <= start and end <= last and text[start:end].strip()
        )
        for start, end in pairwise(edges)
    ]
    most = max(map(abs, weights), default=0.0) or 1.0
    return [
        Piece(text[start:end], round(DEEPEST * abs(weight) / most), weight > 0)
        for (start, end), weight in zip(pairwise(edges), weights, strict=True)
    ]
