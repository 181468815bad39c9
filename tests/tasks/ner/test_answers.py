"""Answers: writing, parsing and locating spans are inverse for any text."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wxb.tasks.ner.models.answers import answer_parts, locate, parse
from wxb.tasks.ner.record import Span

# Characters with a meaning in answers, and ones that are hard to match.
awkward = st.one_of(st.sampled_from("ab9 |;\\\n=>\u3000李é"), st.characters(codec="utf-8"))
texts = st.text(awkward, max_size=40)
types = st.text(awkward, min_size=1, max_size=8)


@st.composite
def labelled(draw):
    """A text with ascending, disjoint, non-empty spans."""
    text = draw(texts)
    edges = sorted(draw(st.sets(st.integers(0, len(text)), max_size=10)))
    pairs = [pair for pair in pairwise(edges) if draw(st.booleans())]
    return text, [Span(start, end, draw(types)) for start, end in pairs]


def answer_of(text, spans):
    return "".join(answer_parts(text, spans))


# Writing and reading


@settings(deadline=None, max_examples=300)
@given(labelled())
def test_answers_are_parsed_back(example):
    text, spans = example
    expected = [(span.type, text[span.start : span.end].strip()) for span in spans]
    assert parse(answer_of(text, spans)) == [pair for pair in expected if pair[1]]


def test_the_form_of_an_answer():
    text = "Ann is 9;\tBob"
    spans = [Span(0, 3, "NAME"), Span(7, 9, "AGE"), Span(10, 13, "NAME")]
    assert answer_of(text, spans) == r"NAME|Ann;;AGE| 9\;;;NAME|Bob"
    assert answer_of(text, []) == ""


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("no field", []),
        ("A| \n", []),
        ("|x", [("", "x")]),
        ("A|x;;junk;;B|y", [("A", "x"), ("B", "y")]),
        ("A|x;;;B|y", [("A", "x"), (";B", "y")]),
        ("A|x\\", [("A", "x\\")]),
        ("A\\|x", []),
        ("A|\\x", [("A", "x")]),
    ],
)
def test_malformed_answers(answer, expected):
    assert parse(answer) == expected


# Locating

mentions = st.lists(
    st.tuples(types, st.text("ab9 李\\", min_size=1).filter(lambda m: m == m.strip())), max_size=8
)


@settings(deadline=None, max_examples=300)
@given(st.text("ab9 李\\", max_size=30), mentions)
def test_spans_select_their_mentions(text, mentions):
    spans = locate(text, mentions)
    assert spans == sorted(spans)
    assert all(left.end <= right.start for left, right in pairwise(spans))
    remaining = list(mentions)
    for span in spans:
        assert 0 <= span.start < span.end <= len(text)
        remaining.remove((span.type, text[span.start : span.end]))


@given(st.lists(st.sampled_from(["Ann", "Bob", "9", "x"]), max_size=12), st.data())
def test_repeated_mentions_have_their_own_offsets(words, data):
    text, spans, start = " ".join(words), [], 0
    for word in words:
        spans.append(Span(start, start + len(word), data.draw(st.sampled_from(["A", "B"]))))
        start += len(word) + 1
    assert locate(text, parse(answer_of(text, spans))) == spans


@pytest.mark.parametrize(
    ("text", "mentions", "starts"),
    [
        # Repeated mentions are located from left to right, each occurrence once.
        ("9 or 9 or 9", ["9", "9"], [0, 5]),
        ("9 or 9", ["9", "9", "9"], [0, 5]),
        ("9 and Bob and 9", ["Bob", "9"], [6, 14]),
        ("Ann and Bob", ["Bob", "Ann"], [0, 8]),
        # Whole words are preferred, even if only a part of a word is after the last mention.
        ("Annabel saw Ann", ["Ann"], [12]),
        ("Annabel saw it", ["Ann"], [0]),
        ("Ann and Annabel", ["Ann", "Ann"], [0, 8]),
        ("Ann met Bob and Annabel", ["Bob", "Ann"], [0, 8]),
        ("李明今年三十岁", ["李明", "三十"], [0, 4]),
        # Mentions match literally.
        ("1.5 or 105", ["105"], [7]),
        ("ann", ["Ann"], []),
        ("(a|b)*", ["(a|b)*"], [0]),
        # Spans do not overlap.
        ("Ann", ["Ann", "Ann"], [0]),
        ("Ann Lee", ["Ann Lee", "Lee"], [0]),
    ],
)
def test_mentions_are_located(text, mentions, starts):
    spans = locate(text, [("T", mention) for mention in mentions])
    assert [span.start for span in spans] == starts
