"""Test records with gold and predicted spans marked in their text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, zip_longest
from typing import NamedTuple

from wxb.tasks.ner.metrics import PredictionRow
from wxb.tasks.ner.metrics.outcomes import Finding, Outcome, compare
from wxb.tasks.ner.record.spans import Span

COUNT = 5  # examples of a system: one for each kind of error, if all occur
MAX_GAP = 160  # characters without a span; longer gaps are shortened
GAP_EDGE = 60  # characters kept at either end of a shortened gap


class Piece(NamedTuple):
    """A part of a record's text, with the outcomes of the spans over it."""

    text: str
    outcome: Outcome | None  # of the first span over it; None without one
    labels: list[tuple[str, Outcome]]  # type and outcome of the spans that end here


class Example(NamedTuple):
    """A record with its gold spans and a system's spans marked in its text."""

    id: str
    gold: list[Piece]
    predicted: list[Piece]


def examples(rows: Sequence[PredictionRow], count: int = COUNT) -> list[Example]:
    """At most `count` records: one for each kind of error in turn, then any others."""
    findings = [compare(row.gold, row.predicted) for row in rows]
    indices_by_error = [
        [index for index, row in enumerate(findings) if any(f.outcome == kind for f in row)]
        for kind in Outcome
        if kind != Outcome.CORRECT
    ]
    in_turn = [i for turn in zip_longest(*indices_by_error) for i in turn if i is not None]
    selected = list(dict.fromkeys([*in_turn, *range(len(rows))]))[:count]
    return [_example(rows[index], findings[index]) for index in selected]


def pieces(text: str, spans: Sequence[tuple[Span, Outcome]]) -> list[Piece]:
    """Split a text at the edges of its spans, which may overlap, and shorten long gaps."""
    edges = sorted({0, len(text), *(edge for span, _ in spans for edge in span[:2])})
    parts = []
    for start, end in pairwise(edges):
        over = [(span, kind) for span, kind in spans if span.start <= start and end <= span.end]
        parts.append(
            Piece(
                text=text[start:end] if over else _shortened(text[start:end]),
                outcome=over[0][1] if over else None,
                labels=[(span.type, kind) for span, kind in over if span.end == end],
            )
        )
    return parts


def _example(record: PredictionRow, findings: Sequence[Finding]) -> Example:
    gold = [(f.gold, f.outcome) for f in findings if f.gold is not None]
    predicted = [(f.predicted, f.outcome) for f in findings if f.predicted is not None]
    return Example(record.id, pieces(record.input, gold), pieces(record.input, predicted))


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_GAP else f"{text[:GAP_EDGE]} … {text[-GAP_EDGE:]}"
