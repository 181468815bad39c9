"""Match gold and predicted spans one to one, and classify the errors."""

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum, auto
from itertools import product
from typing import NamedTuple

from wxb.tasks.ner.record.spans import Span


class Outcome(StrEnum):
    """The outcome of a gold span, a predicted span, or a matched pair."""

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


def compare(gold: Iterable[Span], predicted: Iterable[Span]) -> list[Finding]:
    """Match the spans of one document: every span is in exactly one finding.

    Exact matches come first. The rest are matched one to one, greedily: same offsets, then overlaps
    of the same type, then other overlaps; larger overlaps first, then the leftmost. Unmatched spans
    are MISSED or SPURIOUS. Findings are sorted by their gold span, or else their predicted span.
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
    return sorted(findings, key=lambda finding: [*filter(None, finding[1:])])


def count_outcomes(
    gold: Sequence[Iterable[Span]], predicted: Sequence[Iterable[Span]]
) -> dict[str, int]:
    """The number of findings of `compare` with each outcome, over documents."""
    documents = zip(gold, predicted, strict=True)
    counts = Counter(finding.outcome for g, p in documents for finding in compare(g, p))
    return {outcome.value: counts[outcome] for outcome in Outcome}


def _overlap(a: Span, b: Span) -> int:
    return max(0, min(a.end, b.end) - max(a.start, b.start))


def _mismatch(gold: Span, predicted: Span) -> Outcome:
    if gold[:2] == predicted[:2]:
        return Outcome.WRONG_TYPE
    return Outcome.WRONG_BOUNDARY if gold.type == predicted.type else Outcome.WRONG_BOTH


def _priority(pair: tuple[Span, Span]) -> tuple[int, int, int]:
    # The leftmost is the one whose overlap starts first; swapping gold and predicted is no change.
    gold, predicted = pair
    rank = [*Outcome].index(_mismatch(gold, predicted))
    return rank, -_overlap(gold, predicted), max(gold.start, predicted.start)
