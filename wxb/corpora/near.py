"""Group near duplicates, and count the words by which texts differ.

Near duplicates have the same wording, which a task computes (`Reading.wording`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import regex
from networkx.utils import UnionFind
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from wxb.corpora.records import Record

CHUNK = 256  # texts to compare with all others at once; needs a byte per pair
FAR = 3  # this distance or more

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
    """The Levenshtein distance in words from each text to the nearest of `others`, up to FAR."""
    other_words = [_WORD.findall(text) for text in dict.fromkeys(others)]
    words = [_WORD.findall(text) for text in texts]
    nearest = [
        cdist(
            words[begin : begin + CHUNK],
            other_words,
            scorer=Levenshtein.distance,
            score_cutoff=FAR - 1,
            dtype=np.uint8,
            workers=1,
        ).min(axis=1, initial=FAR)
        for begin in range(0, len(words), CHUNK)
    ]
    return np.concatenate([np.empty(0, np.uint8), *nearest])
