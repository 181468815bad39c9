"""The words that tokens are pieces of, and what their letters tell.

A word is a run of letters and digits; a Chinese or Japanese character stands for itself, and so
does anything else.
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

# Two letters or digits in a row, with their marks and joiners, of scripts that put spaces between
# words.
_WITHIN = regex.compile(
    r"(?V1)[[\w\p{M}\u200c\u200d]--[_\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]]{2}"
)

FEATURES = 4


def continued(text: str, starts: NDArray[np.int32], ends: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Which tokens (T,), by their offsets, go on with the word of the token before."""
    meets = starts[1:] == ends[:-1]
    within = [
        bool(meet and _WITHIN.match(text, at - 1))
        for meet, at in zip(meets, starts[1:], strict=True)
    ]
    return np.array([False, *within])


def features(
    text: str, starts: NDArray[np.int32], ends: NDArray[np.int32], settings: WordFeatures
) -> NDArray[np.int64]:
    """What is told of the word of each token and its neighbours: rows of one table.

    Gives (T, F), where F is 4 for each word of the window; 0 stands for no word. The four are its
    letters in lower case, its first letter, its last three, and its shape, as in spaCy's pipelines.
    """
    window = settings.window
    non_blank = np.flatnonzero(ends > starts)
    firsts = (
        np.flatnonzero(~continued(text, starts[non_blank], ends[non_blank]))
        if len(non_blank)
        else non_blank
    )
    pieces = np.split(non_blank, firsts[1:])
    told = np.zeros((len(firsts) + 2 * window, FEATURES), np.int64)
    for place, tokens in enumerate(pieces[: len(firsts)], window):
        told[place] = _hashed(text[starts[tokens[0]] : ends[tokens[-1]]], settings.rows)
    found = np.zeros((len(starts), (2 * window + 1) * FEATURES), np.int64)
    for place, tokens in enumerate(pieces[: len(firsts)]):
        found[tokens] = told[place : place + 2 * window + 1].ravel()
    return found


@lru_cache(maxsize=100_000)
def _hashed(word: str, rows: int) -> tuple[int, ...]:
    told = (
        ("norm", word.lower()),
        ("prefix", word[:1]),
        ("suffix", word[-3:]),
        ("shape", _shape(word)),
    )
    return tuple(1 + crc32(f"{name} {value}".encode()) % (rows - 1) for name, value in told)


def _shape(word: str) -> str:
    """`Xxxxx` of `Johanna`, `dddd` of `12345`: kinds of characters, at most four alike in a row."""
    kinds = (
        "X" if c.isupper() else "x" if c.isalpha() else "d" if c.isdigit() else c for c in word
    )
    return re.sub(r"(.)\1{3,}", r"\1\1\1\1", "".join(kinds))


class WordEmbedding(nn.Module):
    """What the letters of words add to the hidden states of their tokens."""

    def __init__(self, hidden_size: int, settings: WordFeatures) -> None:
        super().__init__()
        columns = (2 * settings.window + 1) * FEATURES
        self.table = nn.Embedding(settings.rows, settings.width, padding_idx=0)
        self.dropout = nn.Dropout(settings.dropout)
        self.projection = nn.Linear(columns * settings.width, hidden_size)

    def forward(self, words: Tensor) -> Tensor:  # (B, T, F)
        """Vectors (B, T, H)."""
        return F.gelu(self.projection(self.dropout(self.table(words).flatten(2))))
