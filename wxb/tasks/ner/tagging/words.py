"""Features of the words that tokens belong to, and their embedding.

A word is a sequence of letters and digits. A Chinese or Japanese character is a word, and so is any
other character.
"""

from __future__ import annotations

import re
from functools import lru_cache
from zlib import crc32

import numpy as np
import regex
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from wxb.tasks.ner.params import WordFeatures

# Two adjacent letters or digits (or their marks and joiners) of a script with spaces between words.
_WITHIN = regex.compile(
    r"(?V1)[[\w\p{M}\u200c\u200d]--[_\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]]{2}"
)

FEATURES = 4


def continues_word(
    text: str, starts: NDArray[np.int32], ends: NDArray[np.int32]
) -> NDArray[np.bool_]:
    """Whether each token (T,) continues the word of the one before; Chinese characters never do."""
    continues = [
        start == end and _WITHIN.match(text, start - 1) is not None
        for end, start in zip(ends[:-1], starts[1:], strict=True)
    ]
    return np.array([False, *continues][: len(starts)], bool)


def features(
    text: str, starts: NDArray[np.int32], ends: NDArray[np.int32], settings: WordFeatures
) -> NDArray[np.int64]:
    """Feature ids (T, F) of each token's word and `window` words on either side: rows of one table.

    F is 4 for each word: hashes of the lower-case word, its first letter, its last three and its
    shape, as in spaCy's pipelines. They are 0 for a missing word and for blank tokens.
    """
    window = settings.window
    non_blank = np.flatnonzero(ends > starts)
    firsts = np.flatnonzero(~continues_word(text, starts[non_blank], ends[non_blank]))
    words = np.split(non_blank, firsts[1:])[: len(firsts)]  # the tokens of each
    hashes = np.zeros((len(firsts) + 2 * window, FEATURES), np.int64)
    for index, tokens in enumerate(words, window):
        hashes[index] = _hashes(text[starts[tokens[0]] : ends[tokens[-1]]], settings.rows)
    ids = np.zeros((len(starts), (2 * window + 1) * FEATURES), np.int64)
    for index, tokens in enumerate(words):
        ids[tokens] = hashes[index : index + 2 * window + 1].ravel()
    return ids


@lru_cache(maxsize=100_000)
def _hashes(word: str, rows: int) -> tuple[int, ...]:
    values = (
        ("norm", word.lower()),
        ("prefix", word[:1]),
        ("suffix", word[-3:]),
        ("shape", _shape(word)),
    )
    return tuple(1 + crc32(f"{name} {value}".encode()) % (rows - 1) for name, value in values)


def _shape(word: str) -> str:
    """Kinds of characters, at most four equal ones in a row: Xxxxx for Johanna, dddd for 12345."""
    kinds = (
        "X" if c.isupper() else "x" if c.isalpha() else "d" if c.isdigit() else c for c in word
    )
    return re.sub(r"(.)\1{3,}", r"\1\1\1\1", "".join(kinds))


class WordEmbedding(nn.Module):
    """Vectors of word features, to add to the hidden states of tokens."""

    def __init__(self, hidden_size: int, settings: WordFeatures) -> None:
        super().__init__()
        columns = (2 * settings.window + 1) * FEATURES
        self.table = nn.Embedding(settings.rows, settings.width, padding_idx=0)
        self.dropout = nn.Dropout(settings.dropout)
        self.projection = nn.Linear(columns * settings.width, hidden_size)

    def forward(self, words: Tensor) -> Tensor:  # (B, T, F)
        """Vectors (B, T, H) of feature ids."""
        return F.gelu(self.projection(self.dropout(self.table(words).flatten(2))))
