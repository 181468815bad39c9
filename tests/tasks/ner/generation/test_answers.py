"""Answers: what is written is read back, whatever the text, and is found where it stands."""

from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from wxb.tasks.ner.generation.answers import locate, parse, pieces
from wxb.tasks.ner.record.spans import Span

# The characters that mean something in an answer, and those that fold or break in other ways.
awkward = st.one_of(st.sampled_from("ab9 |;\\\n=>\u3000李é"), st.characters(codec="utf-8"))
texts = st.text(awkward, max_size=40)
types = st.text(awkward, min_size=1, max_size=8)


@st.composite
def labelled(draw):
    """A text, and disjoint ascending spans of it: empty ones aside, any will do."""
    text = draw(texts)
    edges = sorted(draw(st.sets(st.integers(0, len(text)), max_size=10)))
    pairs = [pair for pair in pairwise(edges) if draw(st.booleans())]
    return text, [Span(start, end, draw(types)) for start, end in pairs]


def written(text, spans):
    return "".join(pieces(text, spans))


# Writing and reading


@settings(deadline=None, max_examples=300)
@given(st.one_of(st.text(), st.text("a|;\\\n ", max_size=30)))
def test_any_string_is_an_answer(answer):
    for kind, mention in parse(answer):
        assert isinstance(kind, str)
        assert mention == mention.strip() != ""


@settings(deadline=None, max_examples=300)
@given(labelled())
def test_what_is_written_is_read(example):
    text, spans = example
    expected = [(span.type, text[span.start : span.end].strip()) for span in spans]
    assert parse(written(text, spans)) == [pair for pair in expected if pair[1]]


@given(labelled())
def test_pieces_alternate_between_markers_and_mentions(example):
    text, spans = example
    parts = pieces(text, spans)
    assert len(parts) == max(0, 3 * len(spans) - 1)
    assert set(parts[2::3]) <= {";;"}
    assert all(part.endswith("|") for part in parts[0::3])
    assert not any(";;" in part for part in (*parts[0::3], *parts[1::3]))


def test_an_answer_as_a_model_sees_it():
    text = "Ann is 9;\tBob"
    spans = [Span(0, 3, "NAME"), Span(7, 9, "AGE"), Span(10, 13, "NAME")]
    assert written(text, spans) == r"NAME|Ann;;AGE| 9\;;;NAME|Bob"
    assert written(text, []) == ""


def test_fields_and_separators_in_names_and_mentions_are_escaped():
    text = r"a|b;;c\d"
    span = Span(0, len(text), r"X|Y;\;;Z")
    assert written(text, [span]) == r"X\|Y\;\\\;\;Z|a\|b\;\;c\\d"
    assert parse(written(text, [span])) == [(span.type, text)]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("", []),
        ("no field", []),
        (";;;;", []),
        ("|", []),
        ("A|", []),
        ("A| \n", []),
        ("|x", [("", "x")]),
        ("A|x;;", [("A", "x")]),
        ("A|x;;junk;;B|y", [("A", "x"), ("B", "y")]),
        ("A|x;y", [("A", "x;y")]),
        ("A|x|y", [("A", "x|y")]),
        ("A|x;;;B|y", [("A", "x"), (";B", "y")]),
        ("A|x\\", [("A", "x\\")]),
        ("A\\", []),
        ("A\\|x", []),
        ("A|\\x", [("A", "x")]),
        ("A|x\ny", [("A", "x\ny")]),
    ],
)
def test_answers_of_other_forms(answer, expected):
    assert parse(answer) == expected


# Finding

mentions = st.lists(
    st.tuples(types, st.text("ab9 李\\", min_size=1).filter(lambda m: m == m.strip())), max_size=8
)


@settings(deadline=None, max_examples=300)
@given(st.text("ab9 李\\", max_size=30), mentions)
def test_spans_are_where_their_mentions_stand(text, told):
    found = locate(text, told)
    assert found == sorted(found)
    assert all(before.end <= after.start for before, after in pairwise(found))
    left = list(told)
    for span in found:
        assert 0 <= span.start < span.end <= len(text)
        left.remove((span.type, text[span.start : span.end]))


@settings(deadline=None, max_examples=300)
@given(labelled())
def test_mentions_that_stand_once_are_found_where_they_stood(example):
    text, spans = example
    told = [text[span.start : span.end] for span in spans]
    # An overlap with itself would be a second place, too.
    places = [sum(text.startswith(m, at) for at in range(len(text))) for m in told]
    assume(all(m == m.strip() for m in told) and set(places) <= {1})
    assert locate(text, parse(written(text, spans))) == spans


@given(st.lists(st.sampled_from(["Ann", "Bob", "9", "x"]), max_size=12), st.data())
def test_all_mentions_of_a_text_are_found_however_often_they_stand(words, data):
    text, spans, at = " ".join(words), [], 0
    for word in words:
        spans.append(Span(at, at + len(word), data.draw(st.sampled_from(["A", "B"]))))
        at += len(word) + 1
    assert locate(text, parse(written(text, spans))) == spans


def starts(text, *told):
    return [span.start for span in locate(text, [("T", mention) for mention in told])]


def test_repeated_mentions_are_found_from_left_to_right():
    assert starts("9 or 9 or 9", "9", "9") == [0, 5]
    assert starts("9 or 9", "9", "9", "9") == [0, 5]
    assert starts("9 and Bob and 9", "Bob", "9") == [6, 14]


def test_a_mention_told_too_late_is_found_before():
    assert starts("Ann and Bob", "Bob", "Ann") == [0, 8]


def test_a_mention_is_a_word_rather_than_a_part_of_one():
    assert starts("Annabel saw Ann", "Ann") == [12]
    assert starts("Annabel saw it", "Ann") == [0]
    assert starts("Ann and Annabel", "Ann", "Ann") == [0, 8]
    # A word before the last mention, too, rather than a part of one after it.
    assert starts("Ann met Bob and Annabel", "Bob", "Ann") == [0, 8]


def test_words_need_no_spaces_around_them():
    assert starts("李明今年三十岁", "李明", "三十") == [0, 4]


def test_a_mention_is_found_as_it_is_spelled():
    assert starts("1.5 or 105", "105") == [7]
    assert starts("ann", "Ann") == []
    assert starts("(a|b)*", "(a|b)*") == [0]


def test_a_stretch_belongs_to_one_mention():
    assert locate("Ann", [("A", "Ann"), ("B", "Ann")]) == [Span(0, 3, "A")]
    assert locate("Ann Lee", [("A", "Ann Lee"), ("B", "Lee")]) == [Span(0, 7, "A")]
