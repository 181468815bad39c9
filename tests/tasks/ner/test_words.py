"""Word features: which tokens are in one word, its features, and those of its neighbours."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wxb.tasks.ner.models.words import FEATURES, continues_word, features
from wxb.tasks.ner.params import WordFeatures

ROWS = 100_003  # no two features here have the same row
NAMES = ("norm", "prefix", "suffix", "shape")


def cut(text, boundaries):
    """The starts and ends of tokens with these boundaries inside a text."""
    edges = np.array([0, *sorted(boundaries), len(text)], np.int32)
    return edges[:-1], edges[1:]


def letters(text):
    """The starts and ends of single characters."""
    return cut(text, range(1, len(text)))


def by_word(text, starts, ends, window=0, rows=ROWS):
    """The features of each token by word: (T, 2 * window + 1, FEATURES)."""
    settings = WordFeatures(rows=rows, width=4, window=window)
    ids = features(text, np.array(starts, np.int32), np.array(ends, np.int32), settings)
    return ids.reshape(len(starts), 2 * window + 1, FEATURES)


def of_word(word):
    """The features of a text that is one token, by name."""
    return dict(zip(NAMES, by_word(word, [0], [len(word)])[0, 0].tolist(), strict=True))


# Words


@pytest.mark.parametrize(
    "text",
    [
        *("Johanna", "Müller", "Δέλτα", "Иванов", "محمد", "서울시", "h2o", "2024"),
        *("दिल्ली", "e\u0301te\u0301", "می\u200cخواهم"),  # noqa: RUF001
    ],
)
def test_letters_and_digits_continue_a_word(text):
    assert continues_word(text, *letters(text)).tolist() == [False] + [True] * (len(text) - 1)


@pytest.mark.parametrize(
    "text",
    [
        *("李明", "すし", "スシ", "𠮷野", "\uf900\uf901", "a李", "李a", "3月"),
        *("a_", "_a", "a-b", "a.", "'s", "👍🏽"),
    ],
)
def test_han_kana_and_other_characters_are_words(text):
    assert not continues_word(text, *letters(text)).any()


def test_a_gap_ends_a_word():
    starts, ends = np.array([0, 1, 3, 4]), np.array([1, 2, 4, 5])
    assert continues_word("ab cd", starts, ends).tolist() == [False, True, False, True]
    assert continues_word("abxcd", starts, ends).tolist() == [False, True, False, True]


texts = st.text(alphabet="aB1_-. 李すü", min_size=1, max_size=12)


@given(texts, st.sets(st.integers(1, 11)))
def test_a_token_continues_a_word_if_its_first_character_does(text, boundaries):
    starts, ends = cut(text, {boundary for boundary in boundaries if boundary < len(text)})
    by_character = continues_word(text, *letters(text))
    assert continues_word(text, starts, ends).tolist() == by_character[starts].tolist()
    window = continues_word(text, starts[1:-1], ends[1:-1])
    assert window.tolist()[1:] == by_character[starts].tolist()[2:-1]


# Features of a word


@pytest.mark.parametrize(
    ("word", "equal"),
    [
        ("johanna", {"norm", "suffix"}),
        ("JOHANNA", {"norm", "prefix"}),
        ("Joanna", {"prefix", "suffix", "shape"}),
        ("Susanna", {"suffix", "shape"}),
        ("Johann", {"prefix", "shape"}),
        ("J0hanna", {"prefix", "suffix"}),
        ("Jana", {"prefix"}),
        ("李", set()),
    ],
)
def test_words_share_norm_prefix_suffix_or_shape(word, equal):
    johanna, other = of_word("Johanna"), of_word(word)
    assert {name for name in NAMES if johanna[name] == other[name]} == equal


def test_a_shape_has_at_most_four_equal_characters_in_a_row():
    shapes = [of_word("1" * length)["shape"] for length in range(1, 8)]
    assert len({*shapes}) == 4
    assert len({*shapes[3:]}) == 1
    kinds = [of_word(word)["shape"] for word in ("a", "A", "1", "-", "_", "李")]
    assert len({*kinds}) == 5  # a Chinese character is a letter without cases, as `a` is one
    assert kinds[0] == kinds[-1]


def test_feature_ids_do_not_depend_on_the_process():
    """Saved models rely on them; Python chooses another hash seed for each process."""
    johanna, chinese = (of_word(word) for word in ("Johanna", "李"))
    assert johanna == {"norm": 73657, "prefix": 63953, "suffix": 11388, "shape": 5037}
    assert chinese == {"norm": 41173, "prefix": 27794, "suffix": 40583, "shape": 34698}


# Features of neighbours


def test_blank_tokens_have_zeros():
    """Such as special tokens, and tokens of white space."""
    ids = by_word("a b", [0, 0, 1, 2, 3], [0, 1, 1, 3, 3], window=1)
    assert not ids[[0, 2, 4]].any()
    assert np.array_equal(ids[[1, 3]], by_word("a b", [0, 2], [1, 3], window=1))
    assert not by_word("  ", [0, 1], [0, 1], window=1).any()
    assert by_word("", [], [], window=2).shape == (0, 5, FEATURES)


@given(texts, st.sets(st.integers(1, 11)), st.integers(0, 3), st.sampled_from([2, 7, ROWS]))
def test_neighbours_have_their_own_features(text, boundaries, window, rows):
    starts, ends = cut(text, {boundary for boundary in boundaries if boundary < len(text)})
    ids = by_word(text, starts, ends, window, rows)
    assert 0 <= ids.min() <= ids.max() < rows
    assert (ids[:, window] > 0).all()  # row 0 is for missing words
    firsts = np.flatnonzero(~continues_word(text, starts, ends))
    words = np.pad(ids[firsts, window], ((window, window), (0, 0)))
    for index, (first, last) in enumerate(pairwise([*firsts, len(starts)])):
        for token in range(first, last):
            assert np.array_equal(ids[token], words[index : index + 2 * window + 1])
