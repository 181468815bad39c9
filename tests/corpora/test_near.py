import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from tests.corpora.records import record
from wxb.corpora.near import CAP, distances, units
from wxb.tasks.ner.reading import Reading
from wxb.tasks.ner.record import Span


def marked(text, *mentions):
    """A labelled record; mentions in capitals have type ID, others NAME."""
    spans = [
        Span(text.index(m), text.index(m) + len(m), "ID" if m.isupper() else "NAME")
        for m in mentions
    ]
    return record("1", text, tuple(spans))


@pytest.mark.parametrize(
    ("labelled", "expected"),
    [
        (marked("Ann met  Bob at 10:30\n in Ulm", "Ann", "Bob"), "{NAME} met {NAME} at 0:0 in ulm"),
        (marked("ANN is here", "ANN"), "{ID} is here"),
        (marked(" STRASSE 7 "), "strasse 0"),
        (marked("Straße 12"), "strasse 0"),
        (marked("李明在第１２层", "李明"), "{NAME}在第0层"),
        (marked("AnnBob!x", "Ann", "Bob"), "{NAME}{NAME}!x"),
        # Only mentions, digits and punctuation.
        (marked("Ann 3 - Bob 1 .", "Ann", "Bob"), ""),
        (marked("1996-08-22"), ""),
        (record("1", "Nobody labelled this", None), ""),
    ],
)
def test_a_wording_ignores_mentions_numbers_case_and_spaces(labelled, expected):
    assert Reading().wording(labelled) == expected


def test_units_are_named_by_the_smallest_of_their_values():
    records = [
        record(1, "one here", group="b"),
        record(2, "ONE here", group="a"),
        record(3, "other", group="c"),
        record(4, "other", None, group="d"),
        record(5, "1 - 2", group="e"),
        record(6, "2 - 1", group="f"),
        record(7, "third", group=""),
    ]
    assert units(records, lambda r: r.group) == [*"aacdef", ""]
    parity = dict(zip(records, "1010101", strict=True))
    some = records[1:6:2] + records[4:5]
    assert units(some, lambda r: parity[r]) == [*"0001"]


def nearest(texts, others):
    """`distances` by comparing all pairs."""
    pairs = cdist(
        [t.split() for t in texts], [t.split() for t in others], scorer=Levenshtein.distance
    )
    return np.minimum(pairs.min(axis=1, initial=CAP), CAP)


def texts(longest, count):
    words = st.lists(st.sampled_from(["a", "bc", "{X}", "字", "7"]), max_size=longest)
    return st.lists(words.map(" ".join), max_size=count)


@given(texts(5, 12), texts(5, 4))
def test_the_distance_is_the_edits_to_the_nearest(left, right):
    words = distances(left, right)
    assert words.tolist() == nearest(left, right).tolist()
    assert words.dtype == np.uint8


@given(texts(12, 4), st.lists(st.tuples(st.integers(0, 3), st.integers(0, 12)), max_size=4))
def test_edited_texts_are_as_near_as_all_pairs_say(others, changes):
    edited = []
    for text in others:
        words = text.split()
        for kind, index in changes:
            words[index : index + kind % 2 + kind // 3] = ["new"] if kind // 2 else []
        edited.append(" ".join(words))
    assert distances(edited, others).tolist() == nearest(edited, others).tolist()


@pytest.mark.parametrize(
    ("text", "other", "words"),
    [
        ("{NAME} is 0-0", "{AGE} is 0-0", 1),
        ("naïve cafe\u0301", "naïve cafe\u0301", 0),
        ("cafe\u0301", "bar", 1),
        ("在第0层", "在第0楼", 1),
        ("在第0层", "0", 3),
        ("e-mail", "mail", 2),
        ("a_b", "ab", 3),
    ],
)
def test_a_word_is_a_run_of_letters_or_one_other_character(text, other, words):
    assert distances([text], [other]).tolist() == [words]
