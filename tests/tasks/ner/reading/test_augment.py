"""Copies with other names: only mentions change, and only for mentions of the same type."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wxb.corpora.records import Record
from wxb.tasks.ner.params import Augment
from wxb.tasks.ner.reading.augment import augmented
from wxb.tasks.ner.record.spans import Span


def record(number, words):
    text, spans = "", []
    for word, kind in words:
        text += " "
        if kind:
            spans.append(Span(len(text), len(text) + len(word), kind))
        text += word
    return Record(str(number), text, tuple(spans), "en", "g")


words = st.lists(
    st.tuples(st.text("abcXYZ", min_size=1, max_size=4), st.sampled_from(["A", "B", None])),
    min_size=1,
    max_size=6,
)


@given(st.lists(words, min_size=1, max_size=6), st.floats(0.1, 1), st.integers(0, 3))
def test_only_mentions_change_and_only_for_others_of_their_type(sentences, share, seed):
    originals = [record(number, sentence) for number, sentence in enumerate(sentences)]
    mentions = {(span.type, r.input[span.start : span.end]) for r in originals for span in r.gold}
    known = {r.input for r in originals}
    settings = Augment(copies=2, share=share)
    copies = augmented(originals, settings, known=known, seed=seed)
    assert copies == augmented(originals, settings, known=known, seed=seed)
    assert len({copy.input for copy in copies} | known) == len(copies) + len(known)
    assert len({copy.id for copy in copies}) == len(copies)
    for copy in copies:
        origin = originals[int(copy.id.split("+")[0])]
        assert [span.type for span in copy.gold] == [span.type for span in origin.gold]
        assert {(s.type, copy.input[s.start : s.end]) for s in copy.gold} <= mentions
        assert around(copy) == around(origin)


def around(made):
    edges = [0, *(edge for span in made.gold for edge in (span.start, span.end)), len(made.input)]
    return [made.input[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True)]


@pytest.mark.parametrize("share", [0.1, 0.3, 0.9])
def test_the_share_is_that_of_mentions_replaced(share):
    originals = [record(number, [(f"n{number}", "A")]) for number in range(1000)]
    known = {r.input for r in originals}
    first, other = (
        augmented(originals, Augment(copies=1, share=share), known=set(), seed=seed)
        for seed in (1, 2)
    )
    replaced = [copy.input != originals[int(copy.id.split("+")[0])].input for copy in first]
    assert {copy.input for copy in first} <= known
    assert len(first) > 500  # two copies of one text count once
    assert abs(sum(replaced) / len(first) - share) < 0.1
    assert first != other


def test_a_large_share_makes_new_sentences():
    originals = [record(n, [(name, "A"), ("said", None)]) for n, name in enumerate(["ab", "cd"])]
    originals.append(record(2, [("ef", "A"), ("asked", None)]))
    copies = augmented(
        originals, Augment(copies=20, share=1.0), known={r.input for r in originals}, seed=1
    )
    assert {copy.input for copy in copies} == {" ef said", " ab asked", " cd asked"}
