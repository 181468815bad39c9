"""Long texts, read through windows that overlap: nothing is cut off.

A model reads at most so many tokens at a time. Neighbouring windows share `stride` tokens, and in
the middle of what two share the first stops and the second begins to decide, so every token is
decided by one window, and with the most context that any window has for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wxb.corpora.text.encoded import Encoded
from wxb.corpora.text.tokenizers import special_tokens

if TYPE_CHECKING:
    from wxb.corpora.text.tokenizers import AnyTokenizer


class Windows(NamedTuple):
    """The windows (W,) of several texts, in their order; every text has one at least.

    Window w reads the tokens `firsts[w]:lasts[w]` of text `rows[w]` and decides on
    `begins[w]:stops[w]` among them. All four count from the first token of the first text.
    """

    rows: NDArray[np.int64]
    firsts: NDArray[np.int64]
    lasts: NDArray[np.int64]
    begins: NDArray[np.int64]
    stops: NDArray[np.int64]


def cut(splits: NDArray[np.int64], *, size: int, stride: int) -> Windows:
    """Windows of at most `size` tokens, of which neighbours share `stride` or more.

    `splits` are those of `Encoded`. A text's last window ends where the text does and is full.
    Raises ValueError where there is no room for a token.
    """
    if size < 1:
        raise ValueError(f"a window needs room for a token, found {size}")
    lengths = np.diff(splits)
    step = max(1, size - stride)
    counts = 1 + -(-np.maximum(lengths - size, 0) // step)
    rows = np.repeat(np.arange(len(lengths)), counts)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    firsts = splits[rows] + np.minimum(place * step, np.maximum(lengths[rows] - size, 0))
    lasts = np.minimum(firsts + size, splits[rows + 1])
    middles = (firsts[1:] + lasts[:-1]) // 2
    goes_on = rows[1:] == rows[:-1]
    begins, stops = splits[rows], splits[rows + 1]
    begins[1:][goes_on] = stops[:-1][goes_on] = middles[goes_on]
    return Windows(rows, firsts, lasts, begins, stops)


def over(encoded: Encoded, tokenizer: AnyTokenizer, *, max_length: int, stride: int) -> Windows:
    """Windows over tokenized texts: with the special tokens around, `max_length` tokens at most."""
    room = max_length - sum(map(len, special_tokens(tokenizer)))
    return cut(encoded.splits, size=room, stride=stride)


def whole(
    windows: Windows, firsts: NDArray[np.int64], lasts: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Which stretches of tokens `firsts[i]:lasts[i]` (not empty) one window reads as a whole."""
    last_to_begin = np.searchsorted(windows.firsts, firsts, side="right") - 1
    held: NDArray[np.bool_] = lasts <= windows.lasts[last_to_begin]
    return held


def characters(encoded: Encoded, row: int, first: int, last: int, text: str) -> tuple[int, int]:
    """The characters `[start, end)` of the tokens `first:last` of a text.

    What lies between two tokens belongs to the one before; what lies outside all, to the outermost.
    """
    start = 0 if first == encoded.splits[row] else int(encoded.starts[first])
    end = len(text) if last == encoded.splits[row + 1] else int(encoded.starts[last])
    return start, end
