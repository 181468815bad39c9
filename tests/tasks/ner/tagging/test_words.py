"""What the letters of words tell: which tokens make a word, and what its neighbours are."""

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from wxb.tasks.ner.params import WordFeatures
from wxb.tasks.ner.tagging.words import FEATURES, WordEmbedding, continued, features

ROOT = Path(__file__).parents[4]
ROWS = 100_003  # so many that no two features here share one
TOLD = ("norm", "prefix", "suffix", "shape")


def cut(text, places):
    """The starts and ends of tokens that meet at these places of a text."""
    edges = np.array([0, *sorted(places), len(text)], np.int32)
    return edges[:-1], edges[1:]


def letters(text):
    """As `cut`, with every character a token."""
    return cut(text, range(1, len(text)))


def told(text, starts, ends, window=0, rows=ROWS):
    """What is told of each token: (T, words of the window, 4)."""
    settings = WordFeatures(rows=rows, width=4, window=window)
    found = features(text, np.array(starts, np.int32), np.array(ends, np.int32), settings)
    return found.reshape(len(starts), 2 * window + 1, FEATURES)


def of_word(word):
    """What is told of a text that is one token."""
    return dict(zip(TOLD, told(word, [0], [len(word)])[0, 0].tolist(), strict=True))


# Which tokens make a word


@pytest.mark.parametrize(
    "text",
    [
        *("Johanna", "Müller", "Δέλτα", "Иванов", "محمد", "서울시", "h2o", "2024"),
        *("दिल्ली", "e\u0301te\u0301", "می\u200cخواهم"),  # noqa: RUF001
    ],
)
def test_letters_and_digits_go_on_with_a_word(text):
    assert continued(text, *letters(text)).tolist() == [False] + [True] * (len(text) - 1)


@pytest.mark.parametrize(
    "text",
    [
        "李明",
        "すし",
        "スシ",
        "𠮷野",
        "\uf900\uf901",
        "a李",
        "李a",
        "3月",
        "a_",
        "_a",
        "a-b",
        "a.",
        "'s",
        "👍🏽",
    ],
)
def test_han_kana_and_signs_stand_for_themselves(text):
    assert not continued(text, *letters(text)).any()


def test_a_gap_ends_a_word():
    starts, ends = np.array([0, 1, 3, 4]), np.array([1, 2, 4, 5])
    assert continued("ab cd", starts, ends).tolist() == [False, True, False, True]
    assert continued("abxcd", starts, ends).tolist() == [False, True, False, True]


texts = st.text(alphabet="aB1_-. 李すü", min_size=1, max_size=12)


@given(texts, st.sets(st.integers(1, 11)))
def test_a_token_goes_on_with_a_word_where_its_first_character_does(text, places):
    starts, ends = cut(text, {place for place in places if place < len(text)})
    alone = continued(text, *letters(text))
    assert continued(text, starts, ends).tolist() == alone[starts].tolist()


# What is told of a word


@pytest.mark.parametrize(
    ("word", "alike"),
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
def test_of_a_word_is_told_its_norm_prefix_suffix_and_shape(word, alike):
    one, other = of_word("Johanna"), of_word(word)
    assert {name for name in TOLD if one[name] == other[name]} == alike


def test_a_shape_counts_to_four():
    shapes = [of_word("1" * length)["shape"] for length in range(1, 8)]
    assert len({*shapes}) == 4
    assert len({*shapes[3:]}) == 1
    kinds = [of_word(word)["shape"] for word in ("a", "A", "1", "-", "_", "李")]
    assert len({*kinds}) == 5  # a Chinese character is a letter without cases, as `a` is one
    assert kinds[0] == kinds[-1]


@pytest.mark.slow
def test_rows_are_those_that_a_saved_model_has_learnt():
    """In any process, whatever its hash seed."""
    code = (
        "import json, sys; sys.path[:0] = sys.argv[1:]\n"
        "from tests.tasks.ner.tagging.test_words import of_word\n"
        "print(json.dumps([of_word('Johanna'), of_word('李')]))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "5"}
    there = subprocess.run(
        [sys.executable, "-c", code, str(ROOT)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    learnt = [
        {"norm": 73657, "prefix": 63953, "suffix": 11388, "shape": 5037},
        {"norm": 41173, "prefix": 27794, "suffix": 40583, "shape": 34698},
    ]
    assert [of_word("Johanna"), of_word("李")] == json.loads(there.stdout) == learnt


# Where it is told


def test_at_the_edges_of_a_text_there_is_no_word():
    a, b, c = (list(of_word(word).values()) for word in "abc")
    none = [0] * FEATURES
    found = told("a b c", [0, 2, 4], [1, 3, 5], window=2)
    assert found.tolist() == [
        [none, none, a, b, c],
        [none, a, b, c, none],
        [a, b, c, none, none],
    ]
    assert told("a", [0], [1], window=1).tolist() == [[none, a, none]]


def test_pieces_of_a_word_are_told_the_whole_of_it():
    found = told("Ann saw Johanna.", [0, 4, 8, 10, 13, 15], [3, 7, 10, 13, 15, 16], window=1)
    expected = [list(of_word(word).values()) for word in ("saw", "Johanna", ".")]
    assert found[2:5].tolist() == [expected] * 3


def test_blank_tokens_are_no_words():
    """As the special tokens of a text, and what a tokenizer makes of white space alone."""
    found = told("a b", [0, 0, 1, 2, 3], [0, 1, 1, 3, 3], window=1)
    assert not found[[0, 2, 4]].any()
    assert np.array_equal(found[[1, 3]], told("a b", [0, 2], [1, 3], window=1))
    assert not told("  ", [0, 1], [0, 1], window=1).any()
    assert told("", [], [], window=2).shape == (0, 5, FEATURES)


@given(texts, st.sets(st.integers(1, 11)), st.integers(0, 3), st.sampled_from([2, 7, ROWS]))
def test_neighbours_are_told_of_as_they_are_of_themselves(text, places, window, rows):
    starts, ends = cut(text, {place for place in places if place < len(text)})
    found = told(text, starts, ends, window, rows)
    assert 0 <= found.min() <= found.max() < rows
    assert (found[:, window] > 0).all()  # row 0 stands for no word
    firsts = np.flatnonzero(~continued(text, starts, ends))
    words = np.pad(found[firsts, window], ((window, window), (0, 0)))
    for place, (first, last) in enumerate(pairwise([*firsts, len(starts)])):
        for token in range(first, last):
            assert np.array_equal(found[token], words[place : place + 2 * window + 1])


# What is made of it


def test_no_word_adds_what_is_learnt_of_none():
    """The row of no word stays zero, and no gradient reaches it."""
    torch.manual_seed(0)
    layer = WordEmbedding(8, WordFeatures(rows=50, width=4, window=1, dropout=0.5)).eval()
    words = torch.from_numpy(told("a b", [0, 1, 2], [1, 1, 3], window=1, rows=50)).flatten(1)
    found = layer(words[None])  # (1, 3, 8)
    assert found.shape == (1, 3, 8)
    assert torch.equal(found[0, 1], torch.nn.functional.gelu(layer.projection.bias))
    found.sum().backward()
    reached = layer.table.weight.grad.any(dim=1).nonzero().squeeze(1).tolist()
    assert reached == sorted({*words.flatten().tolist()} - {0})
    assert not torch.equal(layer.train()(words[None]), found)
