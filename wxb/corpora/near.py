"""How near texts are to each other.

Near duplicates are texts of one wording, which is what a task makes of them (`record.wording`).
Further apart, what counts is how many words have to be changed, added or left out.
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

CHUNK = 256  # texts compared with all others at once: a byte for each pair
FAR = 3  # stands for any larger distance

# A mention's type, a run of letters and digits with their marks, or else one character: Chinese and
# Japanese have no spaces between words.
_WORD = regex.compile(
    r"(?V1)\{[^{}\s]+\}|[[\w\p{M}]--[_\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]]+|\S"
)


def units(
    records: Sequence[Record], value: Callable[[Record], str], wording: Callable[[Record], str]
) -> list[str]:
    """For each record the name of its unit: what has to stay together.

    Records of one value, one group or one wording do, and so, in turn, do those that share one of
    these with them. A unit is called by the least of its values.
    """
    joined = UnionFind()
    for record in records:
        worded = wording(record)
        also = [("wording", worded)] if worded else []
        joined.union(("value", value(record)), ("group", record.group), *also)
    names: dict[tuple[str, str], str] = {}
    roots = [joined["value", value(record)] for record in records]
    for root, record in zip(roots, records, strict=True):
        names[root] = min(names.get(root, value(record)), value(record))
    return [names[root] for root in roots]


def distances(texts: Iterable[str], others: Iterable[str]) -> NDArray[np.uint8]:
    """How many words part each wording from the nearest of the others; FAR where more than two."""
    known = [_WORD.findall(text) for text in dict.fromkeys(others)]
    asked = [_WORD.findall(text) for text in texts]
    found = [
        cdist(
            asked[begin : begin + CHUNK],
            known,
            scorer=Levenshtein.distance,
            score_cutoff=FAR - 1,
            dtype=np.uint8,
            workers=1,
        ).min(axis=1, initial=FAR)
        for begin in range(0, len(asked), CHUNK)
    ]
    return np.concatenate([np.empty(0, np.uint8), *found])
