"""Test records with gold spans and found spans marked in their text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, zip_longest
from typing import NamedTuple

from wxb.tasks.ner.metrics import Judged
from wxb.tasks.ner.metrics.outcomes import Finding, Outcome, compare
from wxb.tasks.ner.record.spans import Span

NUMBER = 5  # records shown of each experiment: one for each kind of error, where there are all
PLAIN = 160  # characters of text without a span that are shown whole
KEPT = 60  # of a longer one, at either end


class Piece(NamedTuple):
    """A stretch of a record's text, and what the spans over it turned out to be."""

    text: str
    outcome: Outcome | None  # of the first span over it
    labels: list[tuple[str, Outcome]]  # type and outcome of the spans that end here


class Example(NamedTuple):
    """A record with its gold spans and a system's spans marked in its text."""

    id: str
    gold: list[Piece]
    predicted: list[Piece]


def examples(judged: Sequence[Judged], number: int = NUMBER) -> list[Example]:
    """Up to so many records: each kind of error in turn, in the records' order, then any others."""
    found = [compare(record.gold, record.predicted) for record in judged]
    kinds = [
        [row for row, findings in enumerate(found) if any(f.outcome == kind for f in findings)]
        for kind in Outcome
        if kind != Outcome.CORRECT
    ]
    turns = [row for turn in zip_longest(*kinds) for row in turn if row is not None]
    chosen = list(dict.fromkeys([*turns, *range(len(judged))]))[:number]
    return [_example(judged[row], found[row]) for row in chosen]


def pieces(text: str, spans: Sequence[tuple[Span, Outcome]]) -> list[Piece]:
    """Cut a text at the edges of its spans, which may overlap; long gaps are shortened."""
    edges = sorted({0, len(text), *(edge for span, _ in spans for edge in span[:2])})
    cut = []
    for start, end in pairwise(edges):
        over = [(span, kind) for span, kind in spans if span.start <= start and end <= span.end]
        cut.append(
            Piece(
                text=text[start:end] if over else _shortened(text[start:end]),
                outcome=over[0][1] if over else None,
                labels=[(span.type, kind) for span, kind in over if span.end == end],
            )
        )
    return cut


def _example(record: Judged, findings: Sequence[Finding]) -> Example:
    gold = [(f.gold, f.outcome) for f in findings if f.gold is not None]
    predicted = [(f.predicted, f.outcome) for f in findings if f.predicted is not None]
    return Example(record.id, pieces(record.input, gold), pieces(record.input, predicted))


def _shortened(text: str) -> str:
    return text if len(text) <= PLAIN else f"{text[:KEPT]} … {text[-KEPT:]}"
