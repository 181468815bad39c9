"""Features of the words that tokens belong to, and their embedding.

A word is a sequence of letters and digits. A Chinese or Japanese character is a word, and so is any
other character.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import chain, repeat
from zlib import crc32

import numpy as np
import regex
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from wxb.corpora.text.encoded import Encoded
from wxb.corpora.text.windows import Windows
from wxb.tasks.ner.params import WordFeatures
from wxb.tasks.ner.record.shapes import shape

# Letters and digits (and their marks and joiners) of a script with spaces between words.
_WORD = regex.compile(
    r"(?V1)[[\w\p{M}\u200c\u200d]--[_\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]]{2,}"
)

FEATURES = 4


def continues_word(
    text: str, starts: NDArray[np.int32], ends: NDArray[np.int32]
) -> NDArray[np.bool_]:
    """Whether each token (T,) continues the word of the one before; Chinese characters never do."""
    inside = np.zeros(len(text) + 1, bool)  # whether a word goes on at each character
    for word in _WORD.finditer(text):
        inside[word.start() + 1 : word.end()] = True
    continues = np.zeros(len(starts), bool)
    continues[1:] = (starts[1:] == ends[:-1]) & inside[starts[1:]]
    return continues


def features(
    text: str, starts: NDArray[np.int32], ends: NDArray[np.int32], settings: WordFeatures
) -> NDArray[np.integer]:
    """Feature ids (T, F) of each token's word and `window` words on either side: rows of one table.

    F is 4 for each word: hashes of the lower-case word, its first letter, its last three and its
    shape, as in spaCy's pipelines. They are 0 for a missing word and for blank tokens.
    """
    return _features(*_words(text, starts, ends, settings.rows), settings.window)


def window_features(
    texts: Iterable[str], encoded: Encoded, windows: Windows, settings: WordFeatures
) -> Callable[[int], NDArray[np.integer]]:
    """A function of a window's index: the `features` of its tokens.

    Only the features of each word are kept, in as few bytes as they need.
    """
    lengths = windows.lasts - windows.firsts
    types = np.min_scalar_type(settings.rows - 1), np.min_scalar_type(-lengths.max(initial=1))
    columns, splits = (bytearray(), bytearray()), [0]
    counts = np.bincount(windows.rows).tolist()
    of_windows = chain.from_iterable(map(repeat, texts, counts))
    for text, first, last in zip(of_windows, windows.firsts, windows.lasts, strict=True):
        tokens = slice(first, last)
        words = _words(text, encoded.starts[tokens], encoded.ends[tokens], settings.rows)
        for column, values, dtype in zip(columns, words, types, strict=True):
            column += values.astype(dtype).tobytes()
        splits.append(splits[-1] + len(words[0]))
    hashes, word_of = map(np.frombuffer, columns, types)
    hashes, ends = hashes.reshape(-1, FEATURES), np.cumsum(lengths)

    def of_window(window: int) -> NDArray[np.integer]:
        words, end = slice(*splits[window : window + 2]), ends[window]
        return _features(hashes[words], word_of[end - lengths[window] : end], settings.window)

    return of_window


def _words(
    text: str, starts: NDArray[np.int32], ends: NDArray[np.int32], rows: int
) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
    """The hashes (W, FEATURES) of the words of tokens, and the word of each (T,), -1 for blanks."""
    non_blank = np.flatnonzero(ends > starts)
    is_first = ~continues_word(text, starts[non_blank], ends[non_blank])
    is_last = np.append(is_first[1:], True)[: len(is_first)]
    edges = zip(starts[non_blank][is_first], ends[non_blank][is_last], strict=True)
    hashes = [_hashes(text[start:end], rows) for start, end in edges]
    word_of = np.full(len(starts), -1)
    word_of[non_blank] = np.cumsum(is_first) - 1
    return np.array(hashes, np.int64).reshape(-1, FEATURES), word_of


def _features(
    hashes: NDArray[np.integer], word_of: NDArray[np.integer], window: int
) -> NDArray[np.integer]:
    """As `features`, from the values of `_words`."""
    padded = np.pad(hashes, ((window, window + 1), (0, 0)))
    ids: NDArray[np.integer] = padded[word_of[:, None] + np.arange(2 * window + 1)]
    ids = ids.reshape(len(word_of), (2 * window + 1) * FEATURES)
    ids[word_of < 0] = 0
    return ids


@lru_cache(maxsize=100_000)
def _hashes(word: str, rows: int) -> tuple[int, ...]:
    values = (
        ("norm", word.lower()),
        ("prefix", word[:1]),
        ("suffix", word[-3:]),
        ("shape", shape(word)),
    )
    return tuple(1 + crc32(f"{name} {value}".encode()) % (rows - 1) for name, value in values)


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
