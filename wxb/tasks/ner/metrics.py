"""Strict scores and error analysis of typed character spans.

A predicted span is correct when a gold span of the same document has the same start, end and
type. Documents are position-aligned sequences: item i of `gold` and of `predicted` hold the spans
of the same document. Within one document spans are a set: a duplicate counts once.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum, auto
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wxb.tasks.ner.spans import Span

# Columns of every count array.
CORRECT, GOLD, PREDICTED = 0, 1, 2
COLUMNS = 3


class Outcome(StrEnum):
    """What became of a gold span, a predicted span, or a matched pair of both."""

    CORRECT = auto()
    """Same offsets, same type."""
    WRONG_TYPE = auto()
    """Same offsets, other type."""
    WRONG_BOUNDARY = auto()
    """Overlapping but different offsets, same type."""
    WRONG_BOTH = auto()
    """Overlapping but different offsets, other type."""
    MISSED = auto()
    """A gold span left without a prediction."""
    SPURIOUS = auto()
    """A predicted span left without a gold span."""


class Finding(NamedTuple):
    """One outcome and its spans: `gold` is None when SPURIOUS, `predicted` is None when MISSED."""

    outcome: Outcome
    gold: Span | None
    predicted: Span | None


def counts(
    gold: Sequence[Iterable[Span]], predicted: Sequence[Iterable[Span]]
) -> NDArray[np.int64]:
    """Count spans per document: shape (documents, 3), columns CORRECT, GOLD and PREDICTED.

    Raises:
        ValueError: `gold` and `predicted` hold different numbers of documents.
    """
    rows = [(len(g & p), len(g), len(p)) for g, p in _aligned(gold, predicted)]
    return np.array(rows, dtype=np.int64).reshape(-1, COLUMNS)


def by_type(
    gold: Sequence[Iterable[Span]], predicted: Sequence[Iterable[Span]]
) -> dict[str, NDArray[np.int64]]:
    """Count spans per document as `counts` does, for each type on either side, sorted by name.

    Raises:
        ValueError: `gold` and `predicted` hold different numbers of documents.
    """
    documents = _aligned(gold, predicted)
    types = sorted({span.type for g, p in documents for span in g | p})
    tables = {name: np.zeros((len(documents), COLUMNS), dtype=np.int64) for name in types}
    for row, (g, p) in enumerate(documents):
        for column, spans in ((CORRECT, g & p), (GOLD, g), (PREDICTED, p)):
            for span in sorted(spans):
                tables[span.type][row, column] += 1
    return tables


def prf(counts: ArrayLike) -> tuple[Any, Any, Any]:
    """Compute precision, recall and F1, each in [0, 1], with 0/0 taken as 0.

    `counts` has CORRECT, GOLD and PREDICTED on its last axis. A single vector gives three floats;
    leading axes give three arrays of that leading shape. For the micro average over documents
    sum first: `prf(counts(gold, predicted).sum(axis=0))`.

    Raises:
        ValueError: the last axis does not have length 3.
    """
    table = np.asarray(counts)
    if table.shape[-1:] != (COLUMNS,):
        raise ValueError(f"found counts of shape {table.shape}, expected (..., {COLUMNS})")
    correct, gold, predicted = np.moveaxis(table, -1, 0)
    return (
        _ratio(correct, predicted),
        _ratio(correct, gold),
        # Equal to the harmonic mean of precision and recall, in a single division.
        _ratio(2 * correct, gold + predicted),
    )


def compare(gold: Iterable[Span], predicted: Iterable[Span]) -> list[Finding]:
    """Explain one document: every gold and every predicted span is in exactly one finding.

    Exact matches go first. The rest are matched one to one, greedily: same offsets, then overlaps
    of the same type, then other overlaps; larger overlaps first, then the leftmost. What is left
    is MISSED or SPURIOUS. Findings are sorted by the position of the gold span, or of the
    predicted span where there is no gold span.
    """
    golds, predictions = set(gold), set(predicted)
    findings = [Finding(Outcome.CORRECT, span, span) for span in sorted(golds & predictions)]
    missed, spurious = golds - predictions, predictions - golds
    pairs = [pair for pair in product(sorted(missed), sorted(spurious)) if _overlap(*pair)]
    for g, p in sorted(pairs, key=_priority):
        if g in missed and p in spurious:
            missed.remove(g)
            spurious.remove(p)
            findings.append(Finding(_mismatch(g, p), g, p))
    findings += [Finding(Outcome.MISSED, span, None) for span in sorted(missed)]
    findings += [Finding(Outcome.SPURIOUS, None, span) for span in sorted(spurious)]
    return sorted(findings, key=_position)


def breakdown(
    gold: Sequence[Iterable[Span]], predicted: Sequence[Iterable[Span]]
) -> dict[str, int]:
    """Count the findings of `compare` over documents: every outcome is a key, in enum order.

    Raises:
        ValueError: `gold` and `predicted` hold different numbers of documents.
    """
    tally = Counter(
        finding.outcome for g, p in _aligned(gold, predicted) for finding in compare(g, p)
    )
    return {outcome.value: tally[outcome] for outcome in Outcome}


def _aligned(
    gold: Sequence[Iterable[Span]], predicted: Sequence[Iterable[Span]]
) -> list[tuple[set[Span], set[Span]]]:
    if len(gold) != len(predicted):
        raise ValueError(
            f"found {len(predicted)} predicted documents, expected {len(gold)} as in gold"
        )
    return [(set(g), set(p)) for g, p in zip(gold, predicted, strict=True)]


def _ratio(numerator: NDArray[Any], denominator: NDArray[Any]) -> Any:
    zeros = np.zeros(numerator.shape)
    ratio = np.divide(numerator, denominator, out=zeros, where=denominator != 0)
    return ratio if ratio.ndim else ratio.item()


def _overlap(a: Span, b: Span) -> int:
    return max(0, min(a.end, b.end) - max(a.start, b.start))


def _same_offsets(a: Span, b: Span) -> bool:
    return (a.start, a.end) == (b.start, b.end)


def _mismatch(gold: Span, predicted: Span) -> Outcome:
    if _same_offsets(gold, predicted):
        return Outcome.WRONG_TYPE
    return Outcome.WRONG_BOUNDARY if gold.type == predicted.type else Outcome.WRONG_BOTH


_RANK = {Outcome.WRONG_TYPE: 0, Outcome.WRONG_BOUNDARY: 1, Outcome.WRONG_BOTH: 2}


def _priority(pair: tuple[Span, Span]) -> tuple[int, int, int]:
    # "Leftmost" is where the overlap starts, so that swapping gold and predicted changes nothing.
    g, p = pair
    return _RANK[_mismatch(g, p)], -_overlap(g, p), max(g.start, p.start)


def _position(finding: Finding) -> tuple[Span, ...]:
    return tuple(span for span in (finding.gold, finding.predicted) if span is not None)
