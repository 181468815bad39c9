"""Character spans to BIO tags over tokens, and back.

Tags are integers: 0 is `O`; for the type at index t of a list of types, `B` is 1 + 2t and `I` is
2 + 2t. A token without characters (a blank) has the tag IGNORED, in training and prediction.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wxb.corpora.text.encoded import IGNORED, Encoded
from wxb.corpora.text.windows import Windows, read_by_one_window
from wxb.tasks.ner.models.windowed import Status
from wxb.tasks.ner.record import Span

OUTSIDE = 0
SPACING = 1 << 32  # more characters than any text has


class Targets(NamedTuple):
    """The targets of a tagger, one entry per token, in the order of its `Encoded`."""

    tags: NDArray[np.int16]  # IGNORED, or a tag
    starts: NDArray[np.int8]  # 1 at the first token of a span, IGNORED if the tag is
    ends: NDArray[np.int8]  # 1 at the last token of a span, IGNORED if the tag is


def tag_names(types: Sequence[str]) -> list[str]:
    """The names of the tags 0, 1, 2, ...: O, B-AGE, I-AGE, ..."""
    return ["O", *(f"{prefix}-{name}" for name in types for prefix in "BI")]


def align(
    encoded: Encoded, windows: Windows | None, gold: Sequence[Sequence[Span]], types: Sequence[str]
) -> tuple[Targets, NDArray[np.int8]]:  # without windows, no span is split
    """The targets of several texts for the gold spans of each (sorted and disjoint).

    A target per token. Also returns the Status of each span, in order of texts and spans. Of two on
    one token, the second is lost, as are unknown types; a split span still has its targets.
    """
    index_of = {name: index for index, name in enumerate(types)}
    flat = [
        (row, span.start, span.end, index_of.get(span.type, -1))
        for row, spans in enumerate(gold)
        for span in spans
    ]
    rows, span_starts, span_ends, kinds = np.array(flat, np.int64).reshape(-1, 4).T
    non_blank = np.flatnonzero(encoded.ends > encoded.starts)
    starts, ends = encoded.starts[non_blank], encoded.ends[non_blank]
    # One axis for all texts, far enough apart that no span reaches a token of the next text.
    base = np.repeat(np.arange(len(gold)) * SPACING, np.diff(encoded.row_splits))[non_blank]
    firsts = np.searchsorted(ends + base, span_starts + rows * SPACING, side="right")
    stops = np.searchsorted(starts + base, span_ends + rows * SPACING, side="left")
    tagged = np.flatnonzero((firsts < stops) & (kinds >= 0))
    tagged = tagged[_without_overlaps(firsts[tagged], stops[tagged])]
    firsts, stops, kinds = firsts[tagged], stops[tagged], kinds[tagged]

    tags = np.full(len(encoded.ids), OUTSIDE, np.int16)
    first_flags, last_flags = np.zeros((2, len(tags)), np.int8)
    lengths = stops - firsts
    covered = np.arange(lengths.sum()) + np.repeat(firsts - (np.cumsum(lengths) - lengths), lengths)
    tags[non_blank[covered]] = 2 + 2 * np.repeat(kinds, lengths)
    tags[non_blank[firsts]] -= 1
    first_flags[non_blank[firsts]] = last_flags[non_blank[stops - 1]] = 1
    for values in (tags, first_flags, last_flags):
        values[encoded.ends <= encoded.starts] = IGNORED

    exact = (starts[firsts] == span_starts[tagged]) & (ends[stops - 1] == span_ends[tagged])
    whole = np.ones(len(tagged), bool)
    if windows:
        whole = read_by_one_window(windows, non_blank[firsts], non_blank[stops - 1] + 1)
    statuses = np.full(len(flat), Status.LOST, np.int8)
    statuses[tagged] = np.select([~whole, exact], [Status.SPLIT, Status.KEPT], Status.REPAIRED)
    return Targets(tags, first_flags, last_flags), statuses


def _without_overlaps(firsts: NDArray[np.int64], stops: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of ascending token ranges to keep so that none overlaps a kept one before it."""
    kept = np.ones(len(firsts), bool)
    for index in np.flatnonzero(firsts[1:] < stops[:-1]) + 1:
        previous = index - 1
        while not kept[previous]:
            previous -= 1
        kept[index] = firsts[index] >= stops[previous]
    return kept


def best_tags(
    scores: Sequence[NDArray[np.floating]], continues_word: Sequence[NDArray[np.bool_]]
) -> list[NDArray[np.int64]]:
    """The valid tags (T,) with the highest sum of scores (T, K), for each text (Viterbi 1967).

    `I` follows only `B` or `I` of its type. A token that continues a word (T,) is inside a span or
    outside like the token before. One wrong tag would lose a span if each were chosen alone.
    """
    if not scores:
        return []
    order = np.argsort([-len(rows) for rows in scores], kind="stable")  # longest first
    lengths = np.array([len(scores[text]) for text in order])
    padded = np.zeros((lengths[0], len(order), scores[0].shape[1]), scores[0].dtype)  # (T, B, K)
    in_word = np.zeros(padded.shape[:2], bool)
    for column, text in enumerate(order):
        padded[: lengths[column], column] = scores[text]
        in_word[: lengths[column], column] = continues_word[text]
    counts = [int(np.searchsorted(-lengths, -token)) for token in range(len(padded))]
    columns = np.arange(len(order))
    previous = np.zeros(padded.shape, np.int16)  # the best tag before each tag
    inside = np.arange(2, padded.shape[2], 2)
    total = padded[:1].sum(axis=0, dtype=np.float64)  # no token: zeros
    total[:, inside] = -np.inf
    for token in range(1, len(padded)):
        active = slice(counts[token])  # the texts that have this token
        before, now, continues = previous[token, active], total[active], in_word[token, active]
        before[:] = np.where(continues, OUTSIDE, now.argmax(axis=1))[:, None]
        stays = now[:, inside - 1] < now[:, inside]
        before[:, inside] = inside - 1 + stays
        now = now[columns[active, None], before] + padded[token, active]
        now[:, inside - 1] = np.where(continues[:, None], -np.inf, now[:, inside - 1])
        total[active] = now
    path, tag = np.zeros(padded.shape[:2], np.int64), total.argmax(axis=1)
    for token in range(len(padded) - 1, -1, -1):
        active = slice(counts[token])
        path[token, active] = tag[active]
        tag[active] = previous[token, columns[active], tag[active]]
    return [path[: lengths[column], column] for column in np.argsort(order)]


def decode_tags(tags: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield the spans of tags as (first token, one past the last token, index of the type).

    Strict IOB2: a span starts at `B` and continues with `I` of the same type; an `I` without `B` is
    skipped. IGNORED tokens are skipped and do not end a span.
    """
    first = last = kind = -1
    for token, tag in enumerate(tags):
        if tag == IGNORED:
            continue
        if kind >= 0 and tag == 2 + 2 * kind:
            last = token
            continue
        if kind >= 0:
            yield first, last + 1, kind
        kind = (tag - 1) // 2 if tag > 0 and tag % 2 == 1 else -1
        first = last = token
    if kind >= 0:
        yield first, last + 1, kind
