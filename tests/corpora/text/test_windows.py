"""Windows cover the whole text, and each token is predicted by one window."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from wxb.corpora.text.tokenizers import encode, train
from wxb.corpora.text.windows import (
    Windows,
    character_range,
    read_by_one_window,
    sliding_windows,
    text_windows,
)

lengths = st.lists(st.integers(0, 40), max_size=6)
sizes, strides = st.integers(1, 20), st.integers(0, 19)


def splits_of(lengths):
    return np.cumsum([0, *lengths], dtype=np.int64)


@given(lengths, sizes, strides)
def test_each_token_is_predicted_by_one_window_that_reads_it(lengths, size, stride):
    windows = sliding_windows(splits_of(lengths), size=size, stride=stride)
    ranges = zip(windows.predicts_from, windows.predicts_to, strict=True)
    predicted = [token for begin, stop in ranges for token in range(begin, stop)]
    assert predicted == list(range(sum(lengths)))
    for _, first, last, begin, stop in zip(*windows, strict=True):
        assert first <= begin <= stop <= last
        assert last - first <= size


@given(lengths, sizes, strides)
def test_every_text_has_its_windows_in_order(lengths, size, stride):
    row_splits = splits_of(lengths)
    windows = sliding_windows(row_splits, size=size, stride=stride)
    assert sorted(set(windows.rows.tolist())) == list(range(len(lengths)))
    assert windows.rows.tolist() == sorted(windows.rows.tolist())
    for row, length in enumerate(lengths):
        own = Windows(*(values[windows.rows == row] for values in windows))
        assert own.reads_from[0] == own.predicts_from[0] == row_splits[row]
        assert own.reads_to[-1] == own.predicts_to[-1] == row_splits[row + 1]
        assert (
            len(own.rows) == 1 if length <= size else set(own.reads_to - own.reads_from) == {size}
        )
        for before, after in pairwise(range(len(own.rows))):
            assert own.reads_from[before] < own.reads_from[after]
            assert own.reads_to[before] - own.reads_from[after] >= min(stride, size - 1)
            assert own.predicts_to[before] == own.predicts_from[after]


@given(lengths, sizes, strides)
def test_a_token_is_predicted_by_the_window_with_most_context(lengths, size, stride):
    """No other window of its text has more context on both sides (within one token)."""
    windows = sliding_windows(splits_of(lengths), size=size, stride=stride)
    row_splits = splits_of(lengths)

    def context(w, token):
        row = windows.rows[w]
        left = token - windows.reads_from[w] if windows.reads_from[w] > row_splits[row] else np.inf
        right = (
            windows.reads_to[w] - 1 - token if windows.reads_to[w] < row_splits[row + 1] else np.inf
        )
        return min(left, right)

    for w, (begin, stop) in enumerate(zip(windows.predicts_from, windows.predicts_to, strict=True)):
        for token in range(begin, stop):
            reads = (windows.reads_from <= token) & (token < windows.reads_to)
            best = max(context(other, token) for other in np.flatnonzero(reads))
            assert context(w, token) >= best - 1


@given(lengths, sizes, strides, st.data())
def test_in_one_window_checks_ranges_of_tokens(lengths, size, stride, data):
    row_splits = splits_of(lengths)
    windows = sliding_windows(row_splits, size=size, stride=stride)
    tokens = [
        (row, t)
        for row, n in enumerate(lengths)
        for t in range(row_splits[row], row_splits[row] + n)
    ]
    if not tokens:
        return
    row, first = data.draw(st.sampled_from(tokens))
    last = data.draw(st.integers(first + 1, row_splits[row + 1]))
    expected = any(
        a <= first and last <= b for a, b in zip(windows.reads_from, windows.reads_to, strict=True)
    )
    assert read_by_one_window(windows, np.array([first]), np.array([last])).tolist() == [expected]
    if last - first <= min(stride + 1, size):
        assert expected  # ranges up to the overlap are never split


def test_the_characters_of_windows_are_the_whole_text():
    tokenizer = train("byte-level-bpe", 300, ["ab cd"])
    text = "  one two\t three 四五 👨‍👩‍👧 six  "
    encoded = encode(tokenizer, [text])
    windows = text_windows(encoded, tokenizer, max_length=9, stride=3)
    assert len(windows.rows) > 3
    parts = [
        character_range(encoded, 0, begin, stop, text)
        for begin, stop in zip(
            windows.predicts_from.tolist(), windows.predicts_to.tolist(), strict=True
        )
    ]
    assert parts[0][0] == 0
    assert parts[-1][1] == len(text)
    assert all(left[1] == right[0] for left, right in pairwise(parts))
