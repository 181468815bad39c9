"""Character spans to BIO tags over tokens, and back.

Tags are numbers: 0 is `O`, and for the type at index t of a list of types, `B` is 1 + 2t and `I` is
2 + 2t. A token that covers no character (a blank) is tagged IGNORED: it neither teaches nor votes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wxb.corpora.text.encoded import IGNORED, Encoded, read_columns
from wxb.corpora.text.windows import Windows, whole
from wxb.tasks.ner.record.alignment import Status
from wxb.tasks.ner.record.spans import Span

OUTSIDE = 0
FAR = 1 << 32  # more characters than any text has


class Targets(NamedTuple):
    """What a tagger learns, one entry a token, laid out like the `Encoded` it was made from."""

    tags: NDArray[np.int16]  # IGNORED, or a tag's number
    starts: NDArray[np.int8]  # 1 at the first token of a span, IGNORED where tags are
    ends: NDArray[np.int8]  # 1 at the last


def read_targets(path: Path) -> Targets:
    """Read a tagger's targets."""
    columns, _ = read_columns(path, Targets._fields)
    return Targets(**columns)


def tag_names(types: Sequence[str]) -> list[str]:
    """The names of the tags in the order of their numbers: O, B-AGE, I-AGE, ..."""
    return ["O", *(f"{prefix}-{name}" for name in types for prefix in "BI")]


def align(
    encoded: Encoded, windows: Windows, gold: Sequence[Sequence[Span]], types: Sequence[str]
) -> tuple[Targets, NDArray[np.int8]]:
    """Tag the tokens of several texts with the gold spans of each (sorted and disjoint).

    Also tells the status of each span, in the order of texts and spans.
    """
    number = {name: index for index, name in enumerate(types)}
    flat = [
        (row, span.start, span.end, number.get(span.type, -1))
        for row, spans in enumerate(gold)
        for span in spans
    ]
    rows, span_starts, span_ends, kinds = np.array(flat, np.int64).reshape(-1, 4).T
    non_blank = np.flatnonzero(encoded.ends > encoded.starts)
    starts, ends = encoded.starts[non_blank], encoded.ends[non_blank]
    # All texts as one: far enough apart that no span of one reaches a token of the next.
    base = np.repeat(np.arange(len(gold)) * FAR, np.diff(encoded.splits))[non_blank]
    firsts = np.searchsorted(ends + base, span_starts + rows * FAR, side="right")
    lasts = np.searchsorted(starts + base, span_ends + rows * FAR, side="left")
    found = np.flatnonzero((firsts < lasts) & (kinds >= 0))
    found = found[_unclaimed(firsts[found], lasts[found])]
    firsts, lasts, kinds = firsts[found], lasts[found], kinds[found]

    tags = np.full(len(encoded.ids), OUTSIDE, np.int16)
    first_flags, last_flags = np.zeros((2, len(tags)), np.int8)
    lengths = lasts - firsts
    covered = np.arange(lengths.sum()) + np.repeat(firsts - (np.cumsum(lengths) - lengths), lengths)
    tags[non_blank[covered]] = 2 + 2 * np.repeat(kinds, lengths)
    tags[non_blank[firsts]] -= 1
    first_flags[non_blank[firsts]] = last_flags[non_blank[lasts - 1]] = 1
    for values in (tags, first_flags, last_flags):
        values[encoded.ends <= encoded.starts] = IGNORED

    exact = (starts[firsts] == span_starts[found]) & (ends[lasts - 1] == span_ends[found])
    held = whole(windows, non_blank[firsts], non_blank[lasts - 1] + 1)
    statuses = np.full(len(flat), Status.LOST, np.int8)
    statuses[found] = np.select([~held, exact], [Status.SPLIT, Status.KEPT], Status.REPAIRED)
    return Targets(tags, first_flags, last_flags), statuses


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
