"""Character spans to BIO tags over tokens, and back.

Tags are numbers: 0 is `O`, and for the type at index t of a list of types, `B` is 1 + 2t and `I` is
2 + 2t. A token that covers no character (special, padding, blank) is tagged IGNORED: it neither
teaches nor votes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum, auto

import numpy as np
from numpy.typing import NDArray

from wxb.features import IGNORED, Encoded, Targets
from wxb.spans import Span

OUTSIDE = 0


def tag_names(types: Sequence[str]) -> list[str]:
    """The names of the tags in the order of their numbers: O, B-AGE, I-AGE, ..."""
    return ["O", *(f"{prefix}-{name}" for name in types for prefix in "BI")]


class Fate(StrEnum):
    """What became of a gold span when it was laid on tokens."""

    ALIGNED = auto()
    """What is taught gives back the very span."""
    REPAIRED = auto()
    """What is taught gives another: a token reaches over an edge, or the mention stands twice."""
    TRUNCATED = auto()
    """It ends behind the last token that fitted; what fitted of it is tagged."""
    DROPPED = auto()
    """No token covers it, or another span already claimed its first token, or its type is new."""


def account(fates: Sequence[Sequence[Fate]]) -> dict[str, int]:
    """How many gold spans met each fate; the counts add up to `gold`."""
    flat = [fate for row in fates for fate in row]
    return {"gold": len(flat), **{fate.value: flat.count(fate) for fate in Fate}}


def align(
    encoded: Encoded, gold: Sequence[Sequence[Span]], types: Sequence[str]
) -> tuple[Targets, list[list[Fate]]]:
    """Tag the tokens of several texts with the gold spans of each (sorted and disjoint).

    Also tells, for each text, what became of each of its spans.
    """
    tags = np.full(len(encoded.ids), OUTSIDE, np.int16)
    first_flags = np.zeros(len(tags), np.int8)
    last_flags = np.zeros(len(tags), np.int8)
    number = {name: index for index, name in enumerate(types)}
    fates: list[list[Fate]] = []
    inked = np.flatnonzero(encoded.ends > encoded.starts)
    edges = np.searchsorted(inked, encoded.splits)
    for row, spans in enumerate(gold):
        tokens = inked[edges[row] : edges[row + 1]]
        starts, ends = encoded.starts[tokens], encoded.ends[tokens]
        cut = int(ends.max(initial=0)) if encoded.truncated[row] else None
        firsts = np.searchsorted(ends, [span.start for span in spans], side="right")
        lasts = np.searchsorted(starts, [span.end for span in spans], side="left")
        free = 0
        fates.append([])
        for span, first, last in zip(spans, firsts, lasts, strict=True):
            if first < free or first >= last or span.type not in number:
                overrun = cut is not None and span.end > cut and first >= free
                fates[-1].append(Fate.TRUNCATED if overrun else Fate.DROPPED)
                continue
            free = last
            tags[tokens[first:last]] = 2 + 2 * number[span.type]
            tags[tokens[first]] -= 1
            first_flags[tokens[first]] = last_flags[tokens[last - 1]] = 1
            if cut is not None and span.end > cut:
                fates[-1].append(Fate.TRUNCATED)
            elif starts[first] == span.start and ends[last - 1] == span.end:
                fates[-1].append(Fate.ALIGNED)
            else:
                fates[-1].append(Fate.REPAIRED)
    for values in (tags, first_flags, last_flags):
        values[encoded.ends <= encoded.starts] = IGNORED
    return Targets(tags, first_flags, last_flags), fates


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
