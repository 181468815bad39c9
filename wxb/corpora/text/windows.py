"""Split tokenized texts into overlapping windows, so that long texts need no truncation.

Neighbouring windows share `stride` or more tokens. At the middle of the shared tokens the first
window stops and the second begins to predict, so each token is predicted by exactly one window.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wxb.corpora.text.encoded import Encoded
from wxb.corpora.text.tokenizers import AnyTokenizer, special_tokens


class Windows(NamedTuple):
    """The windows (W,) of several texts, in order; each text has at least one.

    Window w reads the tokens `firsts[w]:lasts[w]` of text `rows[w]` and predicts
    `begins[w]:stops[w]` of them. These indices count from the first token of the first text.
    """

    rows: NDArray[np.int64]
    firsts: NDArray[np.int64]
    lasts: NDArray[np.int64]
    begins: NDArray[np.int64]
    stops: NDArray[np.int64]


def sliding_windows(splits: NDArray[np.int64], *, size: int, stride: int) -> Windows:
    """Windows of at most `size` tokens; neighbours share at least `stride` tokens.

    `splits` is that of `Encoded`. The last window of a text ends with the text and is full if the
    text has `size` tokens or more. Raises ValueError if `size` is below 1.
    """
    if size < 1:
        raise ValueError(f"a window needs room for a token, found {size}")
    lengths = np.diff(splits)
    step = max(1, size - stride)
    counts = 1 + -(-np.maximum(lengths - size, 0) // step)
    rows = np.repeat(np.arange(len(lengths)), counts)
    index_in_text = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    firsts = splits[rows] + np.minimum(index_in_text * step, np.maximum(lengths[rows] - size, 0))
    lasts = np.minimum(firsts + size, splits[rows + 1])
    middles = (firsts[1:] + lasts[:-1]) // 2
    same_text = rows[1:] == rows[:-1]
    begins, stops = splits[rows], splits[rows + 1]
    begins[1:][same_text] = stops[:-1][same_text] = middles[same_text]
    return Windows(rows, firsts, lasts, begins, stops)


def text_windows(
    encoded: Encoded, tokenizer: AnyTokenizer, *, max_length: int, stride: int
) -> Windows:
    """Windows of at most `max_length` tokens, including the tokenizer's special tokens."""
    room = max_length - sum(map(len, special_tokens(tokenizer)))
    return sliding_windows(encoded.splits, size=room, stride=stride)


def in_one_window(
    windows: Windows, firsts: NDArray[np.int64], lasts: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Which non-empty ranges of tokens `firsts[i]:lasts[i]` are inside a single window."""
    last_window = np.searchsorted(windows.firsts, firsts, side="right") - 1
    return lasts <= windows.lasts[last_window]


def character_range(
    encoded: Encoded, row: int, first: int, last: int, text: str
) -> tuple[int, int]:
    """The range of characters `[start, end)` of the tokens `first:last` of a text.

    Characters between two tokens belong to the first. Those before or after all tokens belong to
    the outermost.
    """
    start = 0 if first == encoded.splits[row] else int(encoded.starts[first])
    end = len(text) if last == encoded.splits[row + 1] else int(encoded.starts[last])
    return start, end
