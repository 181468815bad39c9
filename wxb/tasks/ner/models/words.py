"""Features of the words that tokens belong to.

A word is a sequence of letters and digits. A Chinese or Japanese character is a word, and so is any
other character.
"""

import re
from functools import lru_cache
from zlib import crc32

import numpy as np
import regex
from numpy.typing import NDArray

from wxb.tasks.ner.params import WordFeatures

# Letters and digits (and their marks and joiners) of a script with spaces between words.
_WORD = regex.compile(
    r"(?V1)[[\w\p{M}\u200c\u200d]--[_\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]]{2,}"
)

Edges = NDArray[np.int32]  # starts or ends of tokens in a text
FEATURES = 4


def shape(word: str) -> str:
    """Letters as X or x, digits as d, others kept; at most 4 equal in a row: Xxxxx for Johanna."""
    kinds = (
        "X" if c.isupper() else "x" if c.isalpha() else "d" if c.isdigit() else c for c in word
    )
    return re.sub(r"(.)\1{3,}", r"\1\1\1\1", "".join(kinds))


def continues_word(text: str, starts: Edges, ends: Edges) -> NDArray[np.bool_]:
    """Whether each token (T,) continues the word of the one before; Chinese characters never do."""
    inside = np.zeros(len(text) + 1, bool)  # whether a word goes on at each character
    # Only between the tokens: they may be a window of a long text.
    window = int(starts.min(initial=len(text))), int(ends.max(initial=0))
    for word in _WORD.finditer(text, *window):
        inside[word.start() + 1 : word.end()] = True
    continues = np.zeros(len(starts), bool)
    continues[1:] = (starts[1:] == ends[:-1]) & inside[starts[1:]]
    return continues


def features(text: str, starts: Edges, ends: Edges, settings: WordFeatures) -> NDArray[np.int64]:
    """Feature ids (T, F) of each token's word and `window` words on either side: rows of one table.

    F is 4 for each word: hashes of the lower-case word, its first letter, its last three and its
    shape, as in spaCy's pipelines. They are 0 for a missing word and for blank tokens.
    """
    window, non_blank = settings.window, np.flatnonzero(ends > starts)
    is_first = ~continues_word(text, starts[non_blank], ends[non_blank])
    is_last = np.append(is_first[1:], True)[: len(is_first)]
    edges = zip(starts[non_blank][is_first], ends[non_blank][is_last], strict=True)
    hashes = [_hashes(text[start:end], settings.rows) for start, end in edges]
    padded = np.pad(np.array(hashes, np.int64).reshape(-1, FEATURES), ((window, window), (0, 0)))
    ids = np.zeros((len(starts), 2 * window + 1, FEATURES), np.int64)
    ids[non_blank] = padded[np.cumsum(is_first)[:, None] - 1 + np.arange(2 * window + 1)]
    return ids.reshape(len(starts), (2 * window + 1) * FEATURES)


@lru_cache(maxsize=100_000)
def _hashes(word: str, rows: int) -> tuple[int, ...]:
    parts = {"norm": word.lower(), "prefix": word[:1], "suffix": word[-3:], "shape": shape(word)}
    return tuple(1 + crc32(f"{name} {part}".encode()) % (rows - 1) for name, part in parts.items())
