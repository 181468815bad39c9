"""Split tokenized texts into overlapping windows, so that long texts need no truncation.

Neighbouring windows share `stride` or more tokens. At the middle of the shared tokens the first
window stops and the second begins to predict, so each token is predicted by exactly one window.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wxb.corpora.text.encoded import Encoded
from wxb.corpora.text.tokenizers import AnyTokenizer, max_text_tokens

Ints = NDArray[np.int64]


class Windows(NamedTuple):
    """The windows (W,) of several texts, in order; each text has at least one.

    Window w reads the tokens `reads_from[w]:reads_to[w]` of text `rows[w]` and predicts
    `predicts_from[w]:predicts_to[w]` of them. These indices count from the first token of the
    first text.
    """

    rows: Ints
    reads_from: Ints
    reads_to: Ints
    predicts_from: Ints
    predicts_to: Ints


def sliding_windows(row_splits: Ints, *, size: int, stride: int) -> Windows:
    """Windows of at most `size` tokens; neighbours share min(`stride`, `size` - 1) or more.

    `row_splits` is that of `Encoded`. The last window of a text ends with the text and is full if
    the text has `size` tokens or more. An empty text has one window, which is empty.
    """
    lengths = np.diff(row_splits)
    step = max(1, size - stride)
    counts = 1 + -(-np.maximum(lengths - size, 0) // step)
    rows = np.repeat(np.arange(len(lengths)), counts)
    index_in_text = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    last_start = np.maximum(lengths[rows] - size, 0)
    reads_from = row_splits[rows] + np.minimum(index_in_text * step, last_start)
    reads_to = np.minimum(reads_from + size, row_splits[rows + 1])
    middles = (reads_from[1:] + reads_to[:-1]) // 2
    same_text = rows[1:] == rows[:-1]
    predicts_from, predicts_to = row_splits[rows], row_splits[rows + 1]
    predicts_from[1:][same_text] = predicts_to[:-1][same_text] = middles[same_text]
    return Windows(rows, reads_from, reads_to, predicts_from, predicts_to)


def text_windows(
    encoded: Encoded, tokenizer: AnyTokenizer, *, max_length: int, stride: int
) -> Windows:
    """Windows of at most `max_length` tokens with special ones; else as `sliding_windows`."""
    size = max_text_tokens(tokenizer, max_length)
    return sliding_windows(encoded.row_splits, size=size, stride=stride)


def read_by_one_window(windows: Windows, starts: Ints, stops: Ints) -> NDArray[np.bool_]:
    """Which non-empty ranges of tokens `starts[i]:stops[i]` a single window reads whole."""
    last_window = np.searchsorted(windows.reads_from, starts, side="right") - 1
    return stops <= windows.reads_to[last_window]


def character_range(
    encoded: Encoded, row: int, start: int, stop: int, text: str
) -> tuple[int, int]:
    """The characters `[begin, end)` of the tokens `start:stop` of `encoded`, all in text `row`.

    Characters between two tokens belong to the first; those around all tokens to the outermost.
    """
    begin = 0 if start == encoded.row_splits[row] else int(encoded.starts[start])
    end = len(text) if stop == encoded.row_splits[row + 1] else int(encoded.starts[stop])
    return begin, end
