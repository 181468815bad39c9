"""Spans to BIO tags and back, and the status of every gold span."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from seqeval.scheme import IOB2, Entities

from wxb.corpora.text.encoded import IGNORED, Encoded
from wxb.corpora.text.windows import sliding_windows
from wxb.tasks.ner.models.bio import align, best_tags, decode_tags, tag_names
from wxb.tasks.ner.models.windowed import Status
from wxb.tasks.ner.record import Span

TYPES = ["AGE", "CITY", "NAME"]


@st.composite
def ranges(draw, longest=24):
    """Ascending, disjoint, non-empty ranges of characters, which often touch."""
    edges = sorted(draw(st.sets(st.integers(0, longest), max_size=12)))
    return [pair for pair in pairwise(edges) if draw(st.booleans())]


@st.composite
def tokenized(draw):
    """Tokens of one text, some for the same characters (bytes), some blank."""
    tokens = []
    for start, end in draw(ranges()):
        tokens += [(start, end)] * draw(st.integers(1, 3))
        tokens += [(end, end)] * draw(st.integers(0, 1))
    return tokens


@st.composite
def gold_spans(draw):
    types = st.sampled_from([*TYPES, "UNKNOWN"])
    return [Span(start, end, draw(types)) for start, end in draw(ranges())]


texts = st.lists(st.tuples(tokenized(), gold_spans()), max_size=4)
sizes = st.tuples(st.integers(1, 30), st.integers(0, 9))


def encoded_of(rows):
    """The tokens of several texts, each a list of (start, end)."""
    pairs = np.array([pair for tokens in rows for pair in tokens], np.int32).reshape(-1, 2)
    return Encoded(
        ids=np.arange(len(pairs), dtype=np.int32),
        starts=pairs[:, 0],
        ends=pairs[:, 1],
        row_splits=np.cumsum([0, *map(len, rows)], dtype=np.int64),
    )


def align_texts(rows, size=99, stride=0):
    """Targets of several texts; the spans of their tags, and the statuses of gold, by text."""
    encoded = encoded_of([tokens for tokens, _ in rows])
    windows = sliding_windows(encoded.row_splits, size=size, stride=stride)
    golds = [gold for _, gold in rows]
    targets, statuses = align(encoded, windows, golds, TYPES)
    assert len(statuses) == sum(map(len, golds))
    remaining = iter(map(Status, statuses))
    return (
        targets,
        [spans_of(encoded, targets.tags, row) for row in range(len(rows))],
        [[next(remaining) for _ in gold] for gold in golds],
    )


def spans_of(encoded, tags, row):
    tokens = slice(encoded.row_splits[row], encoded.row_splits[row + 1])
    starts, ends = encoded.starts[tokens], encoded.ends[tokens]
    return [
        Span(int(starts[first]), int(ends[last - 1]), TYPES[kind])
        for first, last, kind in decode_tags(tags[tokens].tolist())
    ]


def align_one_by_one(tokens, gold):
    """The spans of a text's tags, and their statuses, without arrays."""
    nonblank = [(start, end) for start, end in tokens if end > start]
    tagged, statuses, free = [], [], 0
    for span in gold:
        touched = [i for i, (a, b) in enumerate(nonblank) if a < span.end and b > span.start]
        if not touched or touched[0] < free or span.type not in TYPES:
            statuses.append(Status.LOST)
            continue
        free = touched[-1] + 1
        tagged.append(Span(nonblank[touched[0]][0], nonblank[touched[-1]][1], span.type))
        statuses.append(Status.KEPT if tagged[-1] == span else Status.REPAIRED)
    return tagged, statuses


@settings(deadline=None)
@given(texts)
def test_arrays_and_loops_align_alike(rows):
    _, tagged, statuses = align_texts(rows)
    assert list(zip(tagged, statuses, strict=True)) == [align_one_by_one(*row) for row in rows]


@settings(deadline=None)
@given(texts, sizes)
@example([([(0, 3), (3, 9)], [Span(0, 9, "AGE")])], (1, 0))
def test_windows_change_only_the_status_of_spans_that_none_holds(rows, lengths):
    size, stride = lengths
    targets, _, statuses = align_texts(rows, size=size, stride=stride)
    expected, _, whole_statuses = align_texts(rows)
    for values, others in zip(targets, expected, strict=True):
        np.testing.assert_array_equal(values, others)
    encoded = encoded_of([tokens for tokens, _ in rows])
    windows = sliding_windows(encoded.row_splits, size=size, stride=stride)
    for row, (tokens, gold) in enumerate(rows):
        windows_tokens = [
            set(range(first - encoded.row_splits[row], last - encoded.row_splits[row]))
            for window_row, first, last, *_ in zip(*windows, strict=True)
            if window_row == row
        ]
        for span, status, whole_status in zip(
            gold, statuses[row], whole_statuses[row], strict=True
        ):
            touched = {
                i for i, (a, b) in enumerate(tokens) if a < min(span.end, b) and b > span.start
            }
            is_split = whole_status is not Status.LOST and not any(
                touched <= window_tokens for window_tokens in windows_tokens
            )
            assert status is (Status.SPLIT if is_split else whole_status)


@settings(deadline=None)
@given(texts)
def test_flags_mark_the_edges_of_tags_and_blank_tokens_are_ignored(rows):
    targets, _, _ = align_texts(rows)
    encoded = encoded_of([tokens for tokens, _ in rows])
    for values in targets:
        np.testing.assert_array_equal(values == IGNORED, encoded.ends == encoded.starts)
    first_flags, last_flags = np.zeros((2, len(targets.tags)), bool)
    for start, end in pairwise(encoded.row_splits):
        for first, last, _ in decode_tags(targets.tags[start:end].tolist()):
            first_flags[start + first] = last_flags[start + last - 1] = True
    np.testing.assert_array_equal(targets.starts == 1, first_flags)
    np.testing.assert_array_equal(targets.ends == 1, last_flags)


@settings(deadline=None)
@given(st.lists(st.integers(0, 2 * len(TYPES)), max_size=12))
def test_decoded_spans_are_the_entities_of_strict_iob2(sequence):
    names = tag_names(TYPES)
    entities = Entities([[names[tag] for tag in sequence]], scheme=IOB2).entities[0]
    expected = [(entity.start, entity.end, entity.tag) for entity in entities]
    assert [(first, last, TYPES[kind]) for first, last, kind in decode_tags(sequence)] == expected


@settings(deadline=None)
@given(st.lists(st.one_of(st.just(IGNORED), st.integers(0, 2 * len(TYPES))), max_size=12))
def test_ignored_tokens_do_not_end_a_span(sequence):
    counted = [index for index, tag in enumerate(sequence) if tag != IGNORED]
    expected = [
        (counted[first], counted[last - 1] + 1, kind)
        for first, last, kind in decode_tags([sequence[index] for index in counted])
    ]
    assert list(decode_tags(sequence)) == expected


def is_valid(sequence, continues):
    """Whether `I` follows `B` or `I` of its type, and words are inside or outside as a whole."""
    return all(
        before in (tag - 1, tag) if tag and tag % 2 == 0 else not (inner and (before or tag))
        for before, tag, inner in zip([0, *sequence], sequence, continues, strict=False)
    )


@settings(deadline=None)
@given(st.lists(st.booleans(), max_size=3), st.integers(0, 2), st.integers(0, 999))
def test_the_best_tags_have_the_highest_score_of_all_valid_sequences(inner, types, seed):
    continues = np.array([False, *inner])
    scores = np.random.default_rng(seed).normal(size=(len(continues), 1 + 2 * types)).round(1)
    best = best_tags([scores], [continues])[0].tolist()
    assert is_valid(best, continues)
    highest = max(
        sum(scores[token, tag] for token, tag in enumerate(sequence))
        for sequence in product(range(1 + 2 * types), repeat=len(continues))
        if is_valid(sequence, continues)
    )
    assert sum(scores[token, tag] for token, tag in enumerate(best)) == pytest.approx(highest)


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 9), max_size=6),
    st.integers(0, 4),
    st.sampled_from([0, 1, 8]),
    st.integers(0, 999),
)
def test_texts_decoded_together_have_the_tags_of_each_alone(lengths, types, digits, seed):
    rng = np.random.default_rng(seed)
    shape = 1 + 2 * types
    # Few digits give many ties.
    scores = [rng.normal(size=(n, shape)).round(digits).astype(np.float32) for n in lengths]
    continues = [rng.random(n) < 0.4 for n in lengths]
    together = best_tags(scores, continues)
    assert [len(tags) for tags in together] == lengths
    for tags, own, inner in zip(together, scores, continues, strict=True):
        assert tags.tolist() == best_tags([own], [inner])[0].tolist()
