"""Mention replacement: only mentions change, and only to mentions of the same type."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wxb.corpora.records import Record
from wxb.tasks.ner.params import Augment
from wxb.tasks.ner.reading.augment import replace_mentions
from wxb.tasks.ner.record.spans import Span


def record(id_, words):
    text, spans = "", []
    for word, kind in words:
        text += " "
        if kind:
            spans.append(Span(len(text), len(text) + len(word), kind))
        text += word
    return Record(str(id_), text, tuple(spans), "en", "g")


words = st.lists(
    st.tuples(st.text("abcXYZ", min_size=1, max_size=4), st.sampled_from(["A", "B", None])),
    min_size=1,
    max_size=6,
)


@given(st.lists(words, min_size=1, max_size=6), st.floats(0.1, 1), st.integers(0, 3))
def test_only_mentions_change_to_others_of_their_type(sentences, share, seed):
    originals = [record(index, sentence) for index, sentence in enumerate(sentences)]
    mentions = {(span.type, r.input[span.start : span.end]) for r in originals for span in r.gold}
    known = {r.input for r in originals}
    settings = Augment(copies=2, share=share)
    copies = replace_mentions(originals, settings, known=known, seed=seed)
    assert copies == replace_mentions(originals, settings, known=known, seed=seed)
    assert len({copy.input for copy in copies} | known) == len(copies) + len(known)
    assert len({copy.id for copy in copies}) == len(copies)
    for copy in copies:
        origin = originals[int(copy.id.split("+")[0])]
        assert [span.type for span in copy.gold] == [span.type for span in origin.gold]
        assert {(s.type, copy.input[s.start : s.end]) for s in copy.gold} <= mentions
        assert outside_mentions(copy) == outside_mentions(origin)


def outside_mentions(record):
    edges = [edge for span in record.gold for edge in (span.start, span.end)]
    starts, ends = [0, *edges[1::2]], [*edges[::2], len(record.input)]
    return [record.input[start:end] for start, end in zip(starts, ends, strict=True)]


@pytest.mark.parametrize("share", [0.1, 0.3, 0.9])
def test_the_share_is_the_probability_of_replacement(share):
    originals = [record(index, [(f"n{index}", "A")]) for index in range(1000)]
    known = {r.input for r in originals}
    first, other = (
        replace_mentions(originals, Augment(copies=1, share=share), known=set(), seed=seed)
        for seed in (1, 2)
    )
    replaced = [copy.input != originals[int(copy.id.split("+")[0])].input for copy in first]
    assert {copy.input for copy in first} <= known
    assert len(first) > 500  # equal copies count once
    assert abs(sum(replaced) / len(first) - share) < 0.1
    assert first != other


def test_copies_have_new_texts():
    originals = [
        record(index, [(name, "A"), ("said", None)]) for index, name in enumerate(["ab", "cd"])
    ]
    originals.append(record(2, [("ef", "A"), ("asked", None)]))
    copies = replace_mentions(
        originals, Augment(copies=20, share=1.0), known={r.input for r in originals}, seed=1
    )
    assert {copy.input for copy in copies} == {" ef said", " ab asked", " cd asked"}
