"""Group near duplicates, and count the words by which texts differ.

Near duplicates have the same wording, which a task computes (`Reading.wording`).
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import regex
from networkx.utils import UnionFind
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein

from wxb.corpora.records import Record

CHUNK = 8192  # texts to compare with one text at once
MASKS = 3
FAR = 3  # this distance or more
BASE = 0x9E3779B97F4A7C15  # of polynomial hashes, odd

# The type of a mention; a word of letters, digits and marks; or a single other character, as
# Chinese and Japanese have no spaces between words.
_WORD = regex.compile(
    r"(?V1)\{[^{}\s]+\}|[[\w\p{M}]--[_\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]]+|\S"
)


def units(
    records: Sequence[Record], value: Callable[[Record], str], wording: Callable[[Record], str]
) -> list[str]:
    """The unit of each record: records that must stay together have the same unit.

    These are records with the same value, group or wording, directly or through other records. A
    unit is named after the smallest of its values.
    """
    union = UnionFind()
    for record in records:
        text = wording(record)
        wordings = [("wording", text)] if text else []
        union.union(("value", value(record)), ("group", record.group), *wordings)
    names: dict[tuple[str, str], str] = {}
    roots = [union["value", value(record)] for record in records]
    for root, record in zip(roots, records, strict=True):
        names[root] = min(names.get(root, value(record)), value(record))
    return [names[root] for root in roots]


def distances(texts: Iterable[str], others: Iterable[str]) -> NDArray[np.uint8]:
    """The Levenshtein distance in words from each text to the nearest of `others`, up to FAR.

    A text is compared only with others that share one of three parts. Time is about linear, unless
    most texts share a part: then it is a nanosecond for each pair.
    """
    id_of: defaultdict[str, int] = defaultdict(lambda: len(id_of))
    words, other_words = (_word_ids(group, id_of) for group in (texts, dict.fromkeys(others)))
    hashes = np.random.default_rng(0).integers(2**64, size=len(id_of), dtype=np.uint64)
    left, right = (_Texts.from_words(*group, hashes) for group in (words, other_words))
    nearest = np.full(len(left.lengths), FAR, np.uint8)
    for edits in range(FAR):
        rows = np.flatnonzero(nearest == FAR)
        nearest[_within(edits, left, rows, right)] = edits
    return nearest


def _word_ids(
    texts: Iterable[str], id_of: Mapping[str, int]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The words of all texts as ids, and the number of words of each text."""
    ids, lengths = array("i"), array("q")
    for text in texts:
        words = _WORD.findall(text)
        ids.extend(id_of[word] for word in words)
        lengths.append(len(words))
    return np.array(ids, np.int32), np.array(lengths, np.int64)


class _Texts(NamedTuple):
    """Texts as ids of words, with hashes of any range of words, and a filter of near texts."""

    ids: NDArray[np.int32]  # of the words of all texts
    starts: NDArray[np.int64]  # the index of each text's first word
    lengths: NDArray[np.int64]
    sums: NDArray[np.uint64]  # of hash * BASE**position, over all words before an index
    inverse: NDArray[np.uint64]  # BASE**-position
    masks: NDArray[np.uint64]  # (MASKS, N): in each a bit for each word, flipped if it is repeated

    @classmethod
    def from_words(
        cls, ids: NDArray[np.int32], lengths: NDArray[np.int64], hashes: NDArray[np.uint64]
    ) -> _Texts:
        """The texts of word ids; `hashes` are those of all words."""
        ends = np.cumsum(lengths)
        starts = ends - lengths
        powers, inverse = np.ones((2, lengths.max(initial=0) + 1), np.uint64)
        powers[1:], inverse[1:] = BASE, pow(BASE, -1, 2**64)
        powers, inverse = np.cumprod(powers), np.cumprod(inverse)
        sums, masks = np.zeros(len(ids) + 1, np.uint64), np.empty((MASKS, len(ends)), np.uint64)
        bits = np.arange(0, 6 * MASKS, 6, dtype=np.uint64)[:, None]  # 6 of a hash for each mask
        for first in range(0, len(ends), CHUNK):  # in chunks, to save memory
            rows = slice(first, first + CHUNK)
            begins, stops = starts[rows], ends[rows]
            words = slice(begins[0], stops[-1])
            own = hashes[ids[words]]
            positions = np.arange(words.start, words.stop) - np.repeat(begins, lengths[rows])
            totals = sums[words.start + 1 : words.stop + 1]
            np.cumsum(own * powers[positions], out=totals)
            totals += sums[words.start]
            flips = np.bitwise_xor.accumulate(np.uint64(1) << (own >> bits & np.uint64(63)), axis=1)
            flips = np.pad(flips, ((0, 0), (1, 0)))
            masks[:, rows] = flips[:, begins - words.start] ^ flips[:, stops - words.start]
        return cls(ids, starts, lengths, sums, inverse, masks)

    def words(self, row: int) -> list[int]:
        """The ids of the words of a text."""
        start = self.starts[row]
        words: list[int] = self.ids[start : start + self.lengths[row]].tolist()
        return words

    def keys(
        self,
        rows: NDArray[np.int64],
        begins: NDArray[np.int64],
        stops: NDArray[np.int64],
        kinds: NDArray[np.int64],
    ) -> NDArray[np.uint64]:
        """Hashes (N,) of the words `begins:stops` of texts and of a number."""
        starts = self.starts[rows]
        sums = self.sums[starts + stops] - self.sums[starts + begins]
        kinds_key = kinds.astype(np.uint64) * np.uint64(BASE)
        keys: NDArray[np.uint64] = sums * self.inverse[begins] + kinds_key
        return keys


def _segment(
    lengths: NDArray[np.int64], index: int, edits: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Begin and stop of one of the `edits + 1` segments of texts, and which texts have it.

    Shorter texts have a segment for each word.
    """
    counts = np.minimum(lengths, edits + 1)
    begins, stops = (lengths * i // np.maximum(counts, 1) for i in (index, index + 1))
    return begins, stops, index < counts


class _Index(NamedTuple):
    """The segments of texts, sorted by their keys."""

    keys: NDArray[np.uint64]
    rows: NDArray[np.int64]
    masks: NDArray[np.uint64]

    @classmethod
    def from_texts(cls, texts: _Texts, edits: int) -> _Index:
        """The index of the segments of texts."""
        keys, rows = [], []
        for index in range(edits + 1):
            begins, stops, exists = _segment(texts.lengths, index, edits)
            rows.append(np.flatnonzero(exists))
            kinds = texts.lengths * FAR + index
            keys.append(texts.keys(rows[-1], begins[exists], stops[exists], kinds[exists]))
        order = np.argsort(joined := np.concatenate(keys))
        sorted_rows = np.concatenate(rows)[order]
        return cls(joined[order], sorted_rows, texts.masks[:, sorted_rows])


def _within(edits: int, texts: _Texts, rows: NDArray[np.int64], others: _Texts) -> list[int]:
    """Those rows of texts that are within a number of edits of another text.

    Such a text has one of the `edits + 1` segments of the other text, with at most as many edits
    before it as there are segments before it, and likewise after it. Hence `shift`, by how many
    words the segment is displaced, is bounded. If the other text has no more words than edits, any
    of its words may be the common one, unless both texts are that short.
    """
    index = _Index.from_texts(others, edits)
    found = set()
    if others.lengths.min(initial=FAR) <= edits:
        found = {*rows[texts.lengths[rows] <= edits].tolist()}
    steps = range(-edits, edits + 1)
    for longer, segment, shift in product(steps, range(edits + 1), steps):
        lengths = texts.lengths[rows] - longer
        begins, stops, exists = _segment(lengths, segment, edits)
        in_order = abs(shift) <= segment and abs(shift - longer) <= edits - segment
        exists &= in_order | (lengths <= edits)
        exists &= (begins + shift >= 0) & (stops + shift <= texts.lengths[rows])
        where = (rows, begins + shift, stops + shift, lengths * FAR + segment)
        queries, *ranges = (values[exists] for values in where)
        keys = texts.keys(queries, *ranges)
        lows, highs = (np.searchsorted(index.keys, keys, side) for side in ("left", "right"))
        some = highs > lows
        for row, low, high in zip(*(a[some].tolist() for a in (queries, lows, highs)), strict=True):
            if row not in found and _has_near(texts, row, others, index, low, high, edits):
                found.add(row)
    return [*found]


def _has_near(
    texts: _Texts, row: int, others: _Texts, index: _Index, low: int, high: int, edits: int
) -> bool:
    """Whether a text is within a number of edits of one of those at `low:high` of an index."""
    words, masks = texts.words(row), texts.masks[:, row]
    for start in range(low, high, CHUNK):
        near = np.arange(start, min(start + CHUNK, high))
        for own, mask in zip(index.masks, masks, strict=True):
            # An edit flips at most two bits.
            near = near[np.bitwise_count(own[near] ^ mask) <= 2 * edits]
        for other in index.rows[near].tolist():
            if Levenshtein.distance(words, others.words(other), score_cutoff=edits) <= edits:
                return True
    return False
