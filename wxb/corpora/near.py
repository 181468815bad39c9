"""Group near duplicates, and count the words by which texts differ.

Near duplicates have the same wording, which a task defines (`Reading.wording`).
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import regex
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from wxb.corpora.records import Record

Words = tuple[str, ...]

CAP = 3  # larger distances count as this one

# The type of a mention; a word of letters, digits and marks; or a single other character, as
# Chinese and Japanese have no spaces between words.
_WORD = regex.compile(
    r"(?V1)\{[^{}\s]+\}|[[\w\p{M}]--[_\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]]+|\S"
)


def units(records: Sequence[Record], value: Callable[[Record], str]) -> list[str]:
    """The unit of each record: records that must stay together have the same unit.

    These are records with the same value, group or non-empty wording, directly or through other
    records. A unit is named after the smallest of its values.
    """
    from networkx.utils import UnionFind  # imports slowly

    components = UnionFind()
    for record in records:
        same = [record.wording] if record.wording else []
        components.union(("value", value(record)), ("group", record.group), *same)
    names: dict[Any, str] = {}
    for name in map(value, records):
        unit = components["value", name]
        names[unit] = min(names.get(unit, name), name)
    return [names[components["value", value(record)]] for record in records]


def distances(texts: Iterable[str], others: Iterable[str]) -> NDArray[np.uint8]:
    """The Levenshtein distance in words from each text to the nearest of `others`, up to CAP.

    A text is only compared with others that share a part with it: of CAP parts of a text, one is
    unchanged by fewer than CAP edits. Time is linear in their number unless many share parts.
    """
    words = [_words(text) for text in texts]
    other_words = dict.fromkeys(map(_words, others))
    index: dict[tuple[int, int, Words], list[Words]] = {}
    for other in other_words:
        for part, begin, end in _parts(len(other)):
            index.setdefault((len(other), part, other[begin:end]), []).append(other)
    changed = dict.fromkeys(text for text in words if text not in other_words)
    nearest = {text: _nearest_distance(text, index) for text in changed}
    return np.array([nearest.get(text, 0) for text in words], np.uint8)


def five_words(text: str) -> Iterator[Words]:
    """Each run of five words of a text, as written; a mark or Chinese character is a word."""
    words = _words(text)
    return zip(*(words[start:] for start in range(5)), strict=False)


def _words(text: str) -> Words:
    """The words, single marks and single Chinese characters of a text."""
    return tuple(map(sys.intern, _WORD.findall(text)))


def _parts(length: int) -> Iterator[tuple[int, int, int]]:
    """The index, begin and end of CAP parts of a text of a length in words."""
    for part in range(CAP):
        yield part, length * part // CAP, length * (part + 1) // CAP


def _nearest_distance(words: Words, index: Mapping[tuple[int, int, Words], list[Words]]) -> int:
    """The distance, 1 to CAP, to the nearest other text of an index of parts.

    Edits shift a part by at most their number before it. One unchanged part has at most as many
    edits before it as parts, and likewise after it.
    """
    nearest = CAP
    for length in range(max(0, len(words) - CAP + 1), len(words) + CAP):
        for part, begin, end in _parts(length):
            after = CAP - 1 - part  # the most edits behind the part
            for shift in range(-part, part + 1):
                if begin + shift < 0 or abs(len(words) - length - shift) > after:
                    continue
                others = index.get((length, part, words[begin + shift : end + shift]), [])
                if nearest == 1:
                    return 1
                row = cdist([words], others, scorer=Levenshtein.distance, score_cutoff=nearest - 1)
                nearest = int(row.min(initial=nearest))
    return nearest
