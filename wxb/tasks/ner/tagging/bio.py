"""Character spans to BIO tags over tokens, and back.

Tags are numbers: 0 is `O`, and for the type at index t of a list of types, `B` is 1 + 2t and `I` is
2 + 2t. A token that covers no character (a blank) is tagged IGNORED: it neither teaches nor votes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum, auto

import numpy as np
from numpy.typing import NDArray

from wxb.tasks.ner.spans import Span
from wxb.text.encoded import IGNORED, Encoded, Targets
from wxb.text.windows import Windows, whole

OUTSIDE = 0
FAR = 1 << 32  # more characters than any text has


def tag_names(types: Sequence[str]) -> list[str]:
    """The names of the tags in the order of their numbers: O, B-AGE, I-AGE, ..."""
    return ["O", *(f"{prefix}-{name}" for name in types for prefix in "BI")]


class Fate(IntEnum):
    """What became of a gold span when it was laid on tokens."""

    KEPT = auto()
    """What is taught gives back the very span."""
    REPAIRED = auto()
    """What is taught gives another: a token reaches over an edge, or the mention stands twice."""
    SPLIT = auto()
    """No window holds it whole: each window that reads of it is taught its part."""
    LOST = auto()
    """No token covers it, or another span already claimed its first token, or its type is new."""


def account(fates: NDArray[np.integer]) -> dict[str, int]:
    """How many gold spans met each fate; the counts add up to `gold`."""
    return {"gold": len(fates), **{f.name.lower(): int((fates == f).sum()) for f in Fate}}


def align(
    encoded: Encoded, windows: Windows, gold: Sequence[Sequence[Span]], types: Sequence[str]
) -> tuple[Targets, NDArray[np.int8]]:
    """Tag the tokens of several texts with the gold spans of each (sorted and disjoint).

    Also tells the fate of each span, in the order of texts and spans.
    """
    number = {name: index for index, name in enumerate(types)}
    flat = [
        (row, span.start, span.end, number.get(span.type, -1))
        for row, spans in enumerate(gold)
        for span in spans
    ]
    rows, span_starts, span_ends, kinds = np.array(flat, np.int64).reshape(-1, 4).T
    inked = np.flatnonzero(encoded.ends > encoded.starts)
    starts, ends = encoded.starts[inked], encoded.ends[inked]
    # All texts as one: far enough apart that no span of one reaches a token of the next.
    base = np.repeat(np.arange(len(gold)) * FAR, np.diff(encoded.splits))[inked]
    firsts = np.searchsorted(ends + base, span_starts + rows * FAR, side="right")
    lasts = np.searchsorted(starts + base, span_ends + rows * FAR, side="left")
    found = np.flatnonzero((firsts < lasts) & (kinds >= 0))
    found = found[_unclaimed(firsts[found], lasts[found])]
    firsts, lasts, kinds = firsts[found], lasts[found], kinds[found]

    tags = np.full(len(encoded.ids), OUTSIDE, np.int16)
    first_flags, last_flags = np.zeros((2, len(tags)), np.int8)
    lengths = lasts - firsts
    covered = np.arange(lengths.sum()) + np.repeat(firsts - (np.cumsum(lengths) - lengths), lengths)
    tags[inked[covered]] = 2 + 2 * np.repeat(kinds, lengths)
    tags[inked[firsts]] -= 1
    first_flags[inked[firsts]] = last_flags[inked[lasts - 1]] = 1
    for values in (tags, first_flags, last_flags):
        values[encoded.ends <= encoded.starts] = IGNORED

    exact = (starts[firsts] == span_starts[found]) & (ends[lasts - 1] == span_ends[found])
    held = whole(windows, inked[firsts], inked[lasts - 1] + 1)
    fates = np.full(len(flat), Fate.LOST, np.int8)
    fates[found] = np.select([~held, exact], [Fate.SPLIT, Fate.KEPT], Fate.REPAIRED)
    return Targets(tags, first_flags, last_flags), fates


def _unclaimed(firsts: NDArray[np.int64], lasts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which stretches, in ascending order, share no token with one that came before and is free."""
    free = np.ones(len(firsts), bool)
    for at in np.flatnonzero(firsts[1:] < lasts[:-1]) + 1:
        before = at - 1
        while not free[before]:
            before -= 1
        free[at] = firsts[at] >= lasts[before]
    return free


def likeliest(scores: NDArray[np.floating], joined: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The tags with the highest sum of scores (T, K) among those that make sense (Viterbi 1967).

    `I` follows only `B` or `I` of its type, and a token that is `joined` (T,) to the one before is
    inside or outside together with it: names do not end within words. Taking the best tag of each
    token alone loses every span of which one token leans elsewhere.
    """
    tokens, tags = scores.shape
    before = np.zeros((tokens, tags), np.int64)  # the tag from which each is best reached
    inside = np.arange(2, tags, 2)
    total = scores[0].astype(np.float64)
    total[inside] = -np.inf
    for token in range(1, tokens):
        before[token] = OUTSIDE if joined[token] else total.argmax()
        before[token, inside] = np.where(total[inside - 1] >= total[inside], inside - 1, inside)
        total = total[before[token]] + scores[token]
        if joined[token]:
            total[inside - 1] = -np.inf
    path = np.empty(tokens, np.int64)
    path[-1] = total.argmax()
    for token in range(tokens - 1, 0, -1):
        path[token - 1] = before[token, path[token]]
    return path


def runs(tags: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Read tags strictly (IOB2): yield (first token, one past the last, index of the type).

    A span opens at `B` and goes on while `I` of the same type follows; an `I` without its `B` is
    nothing. IGNORED tokens are passed over and break no span.
    """
    first = last = kind = -1
    for position, tag in enumerate(tags):
        if tag == IGNORED:
            continue
        if kind >= 0 and tag == 2 + 2 * kind:
            last = position
            continue
        if kind >= 0:
            yield first, last + 1, kind
        kind = (tag - 1) // 2 if tag > 0 and tag % 2 == 1 else -1
        first = last = position
    if kind >= 0:
        yield first, last + 1, kind
