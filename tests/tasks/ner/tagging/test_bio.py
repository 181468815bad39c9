"""Spans to tags and back: exact where it says so, and every gold span accounted for."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqeval.scheme import IOB2, Entities

from wxb.corpora.text.encoded import IGNORED, Encoded
from wxb.corpora.text.windows import cut
from wxb.tasks.ner.record.alignment import Status, account
from wxb.tasks.ner.record.spans import Span
from wxb.tasks.ner.tagging.bio import align, likeliest, runs, tag_names

TYPES = ["AGE", "CITY", "NAME"]


@st.composite
def stretches(draw, longest=24):
    """Ascending, disjoint, non-empty stretches of a text, often touching."""
    edges = sorted(draw(st.sets(st.integers(0, longest), max_size=12)))
    return [pair for pair in pairwise(edges) if draw(st.booleans())]


@st.composite
def tokenized(draw):
    """Tokens of one text with doubles (bytes of one character) and blanks."""
    tokens = []
    for start, end in draw(stretches()):
        tokens += [(start, end)] * draw(st.integers(1, 3))
        tokens += [(end, end)] * draw(st.integers(0, 1))
    return tokens


@st.composite
def gold_spans(draw):
    types = st.sampled_from([*TYPES, "UNHEARD_OF"])
    return [Span(start, end, draw(types)) for start, end in draw(stretches())]


texts = st.lists(st.tuples(tokenized(), gold_spans()), max_size=4)
sizes = st.tuples(st.integers(1, 30), st.integers(0, 9))


def encoded_of(rows):
    """One Encoded of several texts: each a list of (start, end)."""
    pairs = np.array([pair for tokens in rows for pair in tokens], np.int32).reshape(-1, 2)
    return Encoded(
        ids=np.arange(len(pairs), dtype=np.int32),
        starts=pairs[:, 0],
        ends=pairs[:, 1],
        splits=np.cumsum([0, *map(len, rows)], dtype=np.int64),
    )


def aligned(rows, size=99, stride=0):
    """Targets of several texts; the spans that their tags say; the statuses of gold, by text."""
    encoded = encoded_of([tokens for tokens, _ in rows])
    windows = cut(encoded.splits, size=size, stride=stride)
    golds = [gold for _, gold in rows]
    targets, statuses = align(encoded, windows, golds, TYPES)
    assert len(statuses) == sum(map(len, golds))
    each = iter(map(Status, statuses))
    return (
        targets,
        [spans_of(encoded, targets.tags, row) for row in range(len(rows))],
        [[next(each) for _ in gold] for gold in golds],
    )


def spans_of(encoded, tags, row):
    tokens = slice(encoded.splits[row], encoded.splits[row + 1])
    starts, ends = encoded.starts[tokens], encoded.ends[tokens]
    return [
        Span(int(starts[first]), int(ends[last - 1]), TYPES[kind])
        for first, last, kind in runs(tags[tokens].tolist())
    ]


def one_by_one(tokens, gold):
    """The spans that a text's tags should say, and their statuses, one by one.

    What `align` does with arrays, written out.
    """
    nonblank = [(start, end) for start, end in tokens if end > start]
    reported, statuses, free = [], [], 0
    for span in gold:
        touched = [at for at, (a, b) in enumerate(nonblank) if a < span.end and b > span.start]
        if not touched or touched[0] < free or span.type not in TYPES:
            statuses.append(Status.LOST)
            continue
        free = touched[-1] + 1
        reported.append(Span(nonblank[touched[0]][0], nonblank[touched[-1]][1], span.type))
        statuses.append(Status.KEPT if reported[-1] == span else Status.REPAIRED)
    return reported, statuses


@settings(deadline=None)
@given(texts)
def test_arrays_say_what_single_steps_say(rows):
    _, reported, statuses = aligned(rows)
    assert list(zip(reported, statuses, strict=True)) == [one_by_one(*row) for row in rows]


@settings(deadline=None)
@given(texts)
def test_the_statuses_explain_every_difference_between_gold_and_tags(rows):
    """What is kept comes back, repaired ones come back with other edges, nothing else does."""
    _, reported, statuses = aligned(rows)
    for (_, gold), read, touched in zip(rows, reported, statuses, strict=True):
        kept = [span for span, status in zip(gold, touched, strict=True) if status is Status.KEPT]
        repaired = [
            span for span, status in zip(gold, touched, strict=True) if status is Status.REPAIRED
        ]
        assert [span for span in read if span in gold] == kept
        changed = [span for span in read if span not in gold]
        assert [span.type for span in changed] == [span.type for span in repaired]
        for now, before in zip(changed, repaired, strict=True):
            assert now.start < before.end
            assert before.start < now.end


@settings(deadline=None)
@given(texts, sizes)
def test_windows_change_nothing_but_the_status_of_what_none_holds(rows, how):
    size, stride = how
    targets, _, statuses = aligned(rows, size=size, stride=stride)
    expected, _, whole_statuses = aligned(rows)
    for values, others in zip(targets, expected, strict=True):
        np.testing.assert_array_equal(values, others)
    encoded = encoded_of([tokens for tokens, _ in rows])
    windows = cut(encoded.splits, size=size, stride=stride)
    for row, (tokens, gold) in enumerate(rows):
        held = [
            set(range(first - encoded.splits[row], last - encoded.splits[row]))
            for at, first, last, *_ in zip(*windows, strict=True)
            if at == row
        ]
        for span, status, whole_status in zip(
            gold, statuses[row], whole_statuses[row], strict=True
        ):
            touched = {
                i for i, (a, b) in enumerate(tokens) if a < min(span.end, b) and b > span.start
            }
            split = whole_status is not Status.LOST and not any(
                touched <= tokens for tokens in held
            )
            assert status is (Status.SPLIT if split else whole_status)


@settings(deadline=None)
@given(texts)
def test_tokens_without_characters_are_ignored_and_only_they(rows):
    targets, _, _ = aligned(rows)
    encoded = encoded_of([tokens for tokens, _ in rows])
    blank = encoded.ends == encoded.starts
    for values in targets:
        np.testing.assert_array_equal(values == IGNORED, blank)


@settings(deadline=None)
@given(texts)
def test_flags_mark_the_first_and_last_tokens_of_tags(rows):
    targets, _, _ = aligned(rows)
    splits = encoded_of([tokens for tokens, _ in rows]).splits
    first_flags, last_flags = np.zeros((2, len(targets.tags)), bool)
    for start, end in pairwise(splits):
        for first, last, _ in runs(targets.tags[start:end].tolist()):
            first_flags[start + first] = last_flags[start + last - 1] = True
    np.testing.assert_array_equal(targets.starts == 1, first_flags)
    np.testing.assert_array_equal(targets.ends == 1, last_flags)


def test_each_status():
    tokens = [(0, 3), (3, 5), (5, 9), (9, 9)]  # abc de fghi, and a blank

    def one(*gold, **how):
        _, reported, statuses = aligned([(tokens, list(gold))], **how)
        return reported[0], statuses[0]

    assert one(Span(0, 5, "AGE")) == ([Span(0, 5, "AGE")], [Status.KEPT])
    assert one(Span(1, 5, "AGE")) == ([Span(0, 5, "AGE")], [Status.REPAIRED])
    assert one(Span(5, 12, "AGE")) == ([Span(5, 9, "AGE")], [Status.REPAIRED])
    assert one(Span(10, 12, "AGE")) == ([], [Status.LOST])
    assert one(Span(0, 3, "UNHEARD_OF")) == ([], [Status.LOST])
    claimed = Span(0, 1, "AGE"), Span(2, 3, "CITY")
    assert one(*claimed) == ([Span(0, 3, "AGE")], [Status.REPAIRED, Status.LOST])
    assert one(Span(0, 5, "AGE"), size=2) == ([Span(0, 5, "AGE")], [Status.KEPT])
    assert one(Span(3, 9, "AGE"), size=2) == ([Span(3, 9, "AGE")], [Status.SPLIT])
    assert one(Span(3, 9, "AGE"), size=2, stride=1) == ([Span(3, 9, "AGE")], [Status.KEPT])


@given(st.lists(st.sampled_from(Status), max_size=9))
def test_the_account_adds_up(statuses):
    counts = account(np.array(statuses, np.int8))
    assert counts.pop("gold") == len(statuses) == sum(counts.values())
    assert list(counts) == ["kept", "repaired", "split", "lost"]


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
