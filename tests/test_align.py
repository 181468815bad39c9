"""Spans to tags and back: exact where it says so, and every gold span accounted for."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.scheme import IOB2, Entities

from wxb.align import Fate, account, align, likeliest, runs, tag_names
from wxb.features import IGNORED, Encoded
from wxb.spans import Span

TYPES = ["AGE", "CITY", "NAME"]


@st.composite
def stretches(draw, longest=24):
    """Ascending, disjoint, non-empty stretches of a text, often touching."""
    edges = sorted(draw(st.sets(st.integers(0, longest), max_size=12)))
    return [pair for pair in pairwise(edges) if draw(st.booleans())]


@st.composite
def tokenized(draw):
    """Tokens of one text with doubles (bytes of one character) and blanks, and whether cut."""
    tokens = [(0, 0)]
    for start, end in draw(stretches()):
        tokens += [(start, end)] * draw(st.integers(1, 3))
        tokens += [(end, end)] * draw(st.integers(0, 1))
    return tokens, draw(st.booleans())


@st.composite
def gold_spans(draw):
    types = st.sampled_from([*TYPES, "UNHEARD_OF"])
    return [Span(start, end, draw(types)) for start, end in draw(stretches())]


texts = st.lists(st.tuples(tokenized(), gold_spans()), max_size=4)


def encoded_of(rows):
    """One Encoded of several texts: each a list of (start, end), and whether it was cut off."""
    pairs = np.array([pair for tokens, _ in rows for pair in tokens], np.int32).reshape(-1, 2)
    return Encoded(
        ids=np.arange(len(pairs), dtype=np.int32),
        starts=pairs[:, 0],
        ends=pairs[:, 1],
        splits=np.cumsum([0, *(len(tokens) for tokens, _ in rows)], dtype=np.int64),
        truncated=np.array([cut for _, cut in rows], bool),
    )


def spans_of(encoded, tags, row):
    tokens = slice(encoded.splits[row], encoded.splits[row + 1])
    starts, ends = encoded.starts[tokens], encoded.ends[tokens]
    return [
        Span(int(starts[first]), int(ends[last - 1]), TYPES[kind])
        for first, last, kind in runs(tags[tokens].tolist())
    ]


def aligned(text):
    """Tags read back, and fates, of one text of the form of `texts`."""
    (tokens, cut), gold = text
    encoded = encoded_of([(tokens, cut)])
    targets, fates = align(encoded, [gold], TYPES)
    return spans_of(encoded, targets.tags, 0), fates[0]


@settings(deadline=None)
@given(texts)
def test_every_gold_span_meets_one_fate_and_tags_say_the_same(rows):
    encoded = encoded_of([row for row, _ in rows])
    golds = [gold for _, gold in rows]
    targets, fates = align(encoded, golds, TYPES)
    assert [len(row) for row in fates] == [len(row) for row in golds]
    for row, (gold, met) in enumerate(zip(golds, fates, strict=True)):
        read = spans_of(encoded, targets.tags, row)
        kept = [span for span, fate in zip(gold, met, strict=True) if fate is Fate.ALIGNED]
        other = [span for span, fate in zip(gold, met, strict=True) if fate is not Fate.ALIGNED]
        # What is aligned comes back, and nothing else does.
        assert [span for span in read if span in gold] == kept
        assert not set(read) & set(other)
        # Every tagged span has a gold span that is not DROPPED.
        tagged = len(met) - met.count(Fate.DROPPED)
        assert tagged - met.count(Fate.TRUNCATED) <= len(read) <= tagged
        if Fate.TRUNCATED in met:
            assert encoded.truncated[row]


@settings(deadline=None)
@given(texts)
def test_tokens_without_characters_are_ignored_and_only_they(rows):
    encoded = encoded_of([row for row, _ in rows])
    targets, _ = align(encoded, [gold for _, gold in rows], TYPES)
    blank = encoded.ends == encoded.starts
    for values in targets:
        np.testing.assert_array_equal(values == IGNORED, blank)


@settings(deadline=None)
@given(texts)
def test_flags_mark_the_first_and_last_tokens_of_tags(rows):
    encoded = encoded_of([row for row, _ in rows])
    targets, _ = align(encoded, [gold for _, gold in rows], TYPES)
    first_flags, last_flags = np.zeros((2, len(encoded.ids)), bool)
    for start, end in pairwise(encoded.splits):
        for first, last, _ in runs(targets.tags[start:end].tolist()):
            first_flags[start + first] = last_flags[start + last - 1] = True
    np.testing.assert_array_equal(targets.starts == 1, first_flags)
    np.testing.assert_array_equal(targets.ends == 1, last_flags)


@settings(deadline=None)
@given(texts)
def test_texts_do_not_touch_each_other(rows):
    encoded = encoded_of([row for row, _ in rows])
    targets, fates = align(encoded, [gold for _, gold in rows], TYPES)
    for row, text in enumerate(rows):
        assert aligned(text) == (spans_of(encoded, targets.tags, row), fates[row])


def test_each_fate():
    tokens = [(0, 0), (0, 3), (3, 5), (5, 9), (9, 9)]  # [CLS] abc de fghi [SEP]
    whole, cut = (tokens, False), (tokens, True)
    assert aligned((whole, [Span(0, 5, "AGE")])) == ([Span(0, 5, "AGE")], [Fate.ALIGNED])
    assert aligned((whole, [Span(1, 5, "AGE")])) == ([Span(0, 5, "AGE")], [Fate.REPAIRED])
    assert aligned((whole, [Span(5, 12, "AGE")])) == ([Span(5, 9, "AGE")], [Fate.REPAIRED])
    assert aligned((cut, [Span(5, 12, "AGE")])) == ([Span(5, 9, "AGE")], [Fate.TRUNCATED])
    assert aligned((cut, [Span(10, 12, "AGE")])) == ([], [Fate.TRUNCATED])
    assert aligned((whole, [Span(10, 12, "AGE")])) == ([], [Fate.DROPPED])
    assert aligned((whole, [Span(0, 3, "UNHEARD_OF")])) == ([], [Fate.DROPPED])
    claimed = [Span(0, 1, "AGE"), Span(2, 3, "CITY")]
    assert aligned((whole, claimed)) == ([Span(0, 3, "AGE")], [Fate.REPAIRED, Fate.DROPPED])


def test_a_span_is_truncated_where_not_even_one_token_fitted():
    assert aligned((([(0, 0), (0, 0)], True), [Span(0, 3, "AGE")])) == ([], [Fate.TRUNCATED])


@given(st.lists(st.lists(st.sampled_from(Fate), max_size=5), max_size=4))
def test_the_account_adds_up(fates):
    counts = account(fates)
    assert counts.pop("gold") == sum(map(len, fates)) == sum(counts.values())
    assert list(counts) == [fate.value for fate in Fate]


tags = st.lists(st.integers(0, 2 * len(TYPES)), max_size=12)


@settings(deadline=None)
@given(tags)
def test_runs_are_the_entities_of_strict_iob2(sequence):
    names = tag_names(TYPES)
    entities = Entities([[names[tag] for tag in sequence]], scheme=IOB2).entities[0]
    expected = [(entity.start, entity.end, entity.tag) for entity in entities]
    assert [(first, last, TYPES[kind]) for first, last, kind in runs(sequence)] == expected


@settings(deadline=None)
@given(st.lists(st.one_of(st.just(IGNORED), st.integers(0, 2 * len(TYPES))), max_size=12))
def test_ignored_tokens_break_no_run(sequence):
    counted = [at for at, tag in enumerate(sequence) if tag != IGNORED]
    expected = [
        (counted[first], counted[last - 1] + 1, kind)
        for first, last, kind in runs([sequence[at] for at in counted])
    ]
    assert list(runs(sequence)) == expected


def makes_sense(sequence, joined):
    """Whether `I` follows `B` or `I` of its type, and what is joined is in or out together."""
    return all(
        before in (tag - 1, tag) if tag and tag % 2 == 0 else not (joint and (before or tag))
        for before, tag, joint in zip([0, *sequence], sequence, joined, strict=False)
    )


@settings(deadline=None)
@given(st.lists(st.booleans(), max_size=3), st.integers(0, 2), st.integers(0, 999))
def test_the_likeliest_tags_are_the_best_of_all_that_make_sense(joints, types, seed):
    joined = np.array([False, *joints])
    scores = np.random.default_rng(seed).normal(size=(len(joined), 1 + 2 * types)).round(1)
    found = likeliest(scores, joined).tolist()
    assert makes_sense(found, joined)
    best = max(
        sum(scores[token, tag] for token, tag in enumerate(sequence))
        for sequence in product(range(1 + 2 * types), repeat=len(joined))
        if makes_sense(sequence, joined)
    )
    assert sum(scores[token, tag] for token, tag in enumerate(found)) == pytest.approx(best)


def test_tags_that_make_sense_are_likeliest_as_they_are():
    sequence = [1, 2, 2, 0, 3, 1, 2, 5, 6, 0]
    scores = np.eye(7, dtype=np.float32)[sequence]
    assert likeliest(scores, np.zeros(len(sequence), bool)).tolist() == sequence


def test_a_span_survives_a_first_token_that_leans_to_nothing():
    probabilities = [[0.5, 0.4, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]]
    assert likeliest(np.log(probabilities), np.zeros(3, bool)).tolist() == [1, 2, 0]


def test_a_word_is_inside_or_outside_as_a_whole():
    outside, inside = [0.0, -2.0, -2.0], [-3.0, 0.0, -3.0]
    scores = np.array([inside, outside, outside])
    assert likeliest(scores, np.array([False, False, False])).tolist() == [1, 0, 0]
    assert likeliest(scores, np.array([False, True, False])).tolist() == [1, 2, 0]
    assert likeliest(scores, np.array([False, True, True])).tolist() == [0, 0, 0]


def test_tags_are_numbered_as_named():
    assert tag_names(["AGE", "CITY"]) == ["O", "B-AGE", "I-AGE", "B-CITY", "I-CITY"]
