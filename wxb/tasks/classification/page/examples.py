"""Example texts of a page, with their evidence highlighted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from wxb.tasks.classification.metrics import PredictionRow

COUNT = 6  # texts of each system, up to half of them errors
MAX_CHARACTERS = 600  # of a text that is shown
MAX_DEPTH = 62  # percent of colour for the largest weight


class Piece(NamedTuple):
    """A part of a text, with its weight as percent of colour, and its sign."""

    text: str
    depth: int
    is_positive: bool  # for the predicted class


class Example(NamedTuple):
    """A text in pieces, with its gold class, its predicted class and the latter's probability."""

    id: str
    gold: str
    predicted: str
    probability: float
    pieces: list[Piece]


def examples(rows: Sequence[PredictionRow]) -> list[Example]:
    """Up to COUNT texts with evidence: errors first, at most half of COUNT."""
    explained = [row for row in rows if row.evidence is not None]
    wrong = [row for row in explained if row.gold != row.predicted][: COUNT // 2]
    right = [row for row in explained if row.gold == row.predicted]
    return [
        Example(
            row.id,
            row.gold,
            row.predicted,
            row.probabilities[row.predicted],
            pieces(row.input[:MAX_CHARACTERS], row.evidence or ()),
        )
        for row in [*wrong, *right][:COUNT]
    ]


def pieces(text: str, evidence: Sequence[tuple[int, int, float]]) -> list[Piece]:
    """A text cut at the edges of weighted spans (start, end, weight), with summed weights.

    A span of several words gives each of them an equal share. Spans beyond the text are ignored.
    """
    spans = [span for span in evidence if span[1] <= len(text)]
    edges = sorted({0, len(text), *(edge for start, end, _ in spans for edge in (start, end))})
    weights = [
        sum(
            weight / len(text[first:last].split())
            for first, last, weight in spans
            if first <= start and end <= last and text[start:end].strip()
        )
        for start, end in pairwise(edges)
    ]
    largest = max(map(abs, weights), default=0.0) or 1.0
    return [
        Piece(text[start:end], round(MAX_DEPTH * abs(weight) / largest), weight > 0)
        for (start, end), weight in zip(pairwise(edges), weights, strict=True)
    ]
