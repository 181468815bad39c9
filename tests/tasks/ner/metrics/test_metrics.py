import os
import subprocess
import sys
import warnings
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics.v1 import precision_recall_fscore_support
from seqeval.scheme import IOB2

from wxb.tasks.ner.metrics import (
    CORRECT,
    GOLD,
    PREDICTED,
    by_type,
    counts,
    prf,
)
from wxb.tasks.ner.metrics.outcomes import Finding, Outcome, compare, count_outcomes
from wxb.tasks.ner.record.spans import Span

ROOT = Path(__file__).parents[4]
TYPES = ("EMAIL", "NAME", "PHONE")

types = st.sampled_from(TYPES)
spans = st.builds(
    lambda start, length, type: Span(start, start + length, type),
    st.integers(0, 12),
    st.integers(1, 6),
    types,
)
span_sets = st.lists(spans, max_size=8)
documents = st.lists(st.tuples(span_sets, span_sets), max_size=6)


@st.composite
def flat_spans(draw):
    """Spans of one document without overlaps, as token classifiers predict them."""
    edges = sorted(draw(st.sets(st.integers(0, 20), max_size=10)))
    adjacent = [Span(a, b, draw(types)) for a, b in pairwise(edges)]
    return [span for span in adjacent if draw(st.booleans())]


def sides(pairs):
    return [gold for gold, _ in pairs], [predicted for _, predicted in pairs]


def scores(gold, predicted):
    return prf(counts(gold, predicted).sum(axis=0))


# Counts


def test_counts_by_hand():
    gold = [[Span(0, 3, "NAME"), Span(5, 9, "EMAIL")], [], [Span(1, 2, "NAME")]]
    predicted = [[Span(0, 3, "NAME"), Span(5, 8, "EMAIL"), Span(9, 10, "NAME")], [], []]
    table = counts(gold, predicted)
    assert table.tolist() == [[1, 2, 3], [0, 0, 0], [0, 1, 0]]
    assert table.dtype == np.int64


def test_columns_are_named():
    table = counts([[Span(0, 1, "A"), Span(2, 3, "A")]], [[Span(0, 1, "A")]])
    assert (table[0, CORRECT], table[0, GOLD], table[0, PREDICTED]) == (1, 2, 1)


@pytest.mark.parametrize(
    "predicted",
    [Span(0, 4, "NAME"), Span(1, 3, "NAME"), Span(0, 3, "EMAIL"), Span(0, 3, "name")],
)
def test_only_the_exact_span_is_correct(predicted):
    assert counts([[Span(0, 3, "NAME")]], [[predicted]]).tolist() == [[0, 1, 1]]


def test_duplicates_count_once():
    span = Span(0, 3, "NAME")
    assert counts([[span, span]], [[span, span, span]]).tolist() == [[1, 1, 1]]
    assert by_type([[span, span]], [[span]])["NAME"].tolist() == [[1, 1, 1]]
    assert len(compare([span, span], [span])) == 1


def test_equal_spans_of_different_documents_do_not_match():
    span = Span(0, 3, "NAME")
    assert counts([[span], []], [[], [span]])[:, CORRECT].tolist() == [0, 0]


def test_no_documents():
    assert counts([], []).shape == (0, 3)
    assert by_type([], []) == {}
    assert set(count_outcomes([], []).values()) == {0}


def test_documents_may_be_iterators():
    span = Span(0, 3, "NAME")
    assert counts([iter([span])], [iter([span])]).tolist() == [[1, 1, 1]]
    assert by_type([iter([span])], [iter([span])])["NAME"].tolist() == [[1, 1, 1]]
    assert [finding.outcome for finding in compare(iter([span]), iter([span]))] == ["correct"]


@pytest.mark.parametrize("score", [counts, by_type, count_outcomes])
def test_numbers_of_documents_must_be_equal(score):
    with pytest.raises(ValueError, match="shorter"):
        score([[], []], [[]])


@given(documents)
def test_correct_is_at_most_gold_and_predicted(pairs):
    table = counts(*sides(pairs))
    assert table.shape == (len(pairs), 3)
    assert (table[:, CORRECT] <= np.minimum(table[:, GOLD], table[:, PREDICTED])).all()


@given(documents, st.randoms(use_true_random=False))
def test_order_inside_a_document_is_irrelevant(pairs, random):
    gold, predicted = sides(pairs)
    shuffled = [random.sample(document, len(document)) for document in gold]
    assert (counts(shuffled, predicted) == counts(gold, predicted)).all()
    for document, other, prediction in zip(gold, shuffled, predicted, strict=True):
        assert compare(document, prediction) == compare(other, prediction)


# Precision, recall, F1


def test_prf_by_hand():
    precision, recall, f1 = prf([2, 4, 3])
    assert precision == pytest.approx(2 / 3)
    assert recall == pytest.approx(2 / 4)
    assert f1 == pytest.approx(4 / 7)


@pytest.mark.parametrize("empty", [[0, 0, 0], [0, 5, 0], [0, 0, 5], [0, 5, 5]])
def test_zero_over_zero_is_zero_without_a_warning(empty):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert prf(empty) == (0.0, 0.0, 0.0)


def test_prf_of_one_vector_is_plain_floats():
    assert [type(score) for score in prf(np.array([1, 2, 3]))] == [float] * 3


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=8
    )
)
def test_prf_is_vectorised_over_leading_axes(rows):
    table = np.array([(c, c + g, c + p) for c, g, p in rows])
    for name, column in enumerate(prf(table)):
        assert column.tolist() == [prf(row)[name] for row in table]
    nested = prf(np.stack([table, table])[None])
    assert [axis.shape for axis in nested] == [(1, 2, len(rows))] * 3


@given(st.integers(1, 99), st.integers(0, 99), st.integers(0, 99))
def test_f1_is_the_harmonic_mean(correct, missed, spurious):
    precision, recall, f1 = prf([correct, correct + missed, correct + spurious])
    assert f1 == pytest.approx(2 * precision * recall / (precision + recall))


@given(documents)
def test_swapping_sides_swaps_precision_and_recall(pairs):
    gold, predicted = sides(pairs)
    precision, recall, f1 = scores(gold, predicted)
    assert scores(predicted, gold) == (recall, precision, f1)


# By type


def test_by_type_by_hand():
    gold = [[Span(0, 3, "NAME"), Span(5, 9, "EMAIL")], [Span(1, 2, "NAME")]]
    predicted = [[Span(0, 3, "NAME"), Span(5, 9, "PHONE")], [Span(1, 3, "NAME")]]
    tables = by_type(gold, predicted)
    assert list(tables) == ["EMAIL", "NAME", "PHONE"]
    assert tables["EMAIL"].tolist() == [[0, 1, 0], [0, 0, 0]]
    assert tables["NAME"].tolist() == [[1, 1, 1], [0, 1, 1]]
    assert tables["PHONE"].tolist() == [[0, 0, 1], [0, 0, 0]]
    assert tables["NAME"].dtype == np.int64


@given(documents)
def test_types_sum_to_the_counts(pairs):
    gold, predicted = sides(pairs)
    tables = by_type(gold, predicted)
    assert list(tables) == sorted(tables)
    total = sum(tables.values(), np.zeros((len(pairs), 3), dtype=np.int64))
    assert (total == counts(gold, predicted)).all()


@given(documents)
def test_each_type_is_counted_as_if_alone(pairs):
    gold, predicted = sides(pairs)
    for name, table in by_type(gold, predicted).items():
        alone = [[[s for s in doc if s.type == name] for doc in side] for side in (gold, predicted)]
        assert (table == counts(*alone)).all()


# Agreement with seqeval

LABELS = ["O", *(f"{prefix}-{name}" for name in TYPES for prefix in "BI")]


@st.composite
def well_formed(draw, length):
    labels = []
    while len(labels) < length:
        name = draw(types)
        inside = draw(st.integers(0, 3))
        labels += draw(st.sampled_from([["O"], [f"B-{name}", *[f"I-{name}"] * inside]]))
    return labels[:length]


@st.composite
def label_pairs(draw):
    """Gold and predicted labels of documents, each well-formed or not."""
    pairs = []
    for _ in range(draw(st.integers(1, 4))):
        length = draw(st.integers(1, 12))
        any_labels = st.lists(st.sampled_from(LABELS), min_size=length, max_size=length)
        labels = st.one_of(well_formed(length), any_labels)
        pairs.append((draw(labels), draw(labels)))
    return pairs


def read_iob2(labels):
    """The spans in strict IOB2: B-X and the I-X that follow; any other I-X is outside."""
    spans, current = [], None
    for index, label in enumerate([*labels, "O"]):
        if current and label == f"I-{current.type}":
            current = current._replace(end=index + 1)
            continue
        if current:
            spans.append(current)
        current = Span(index, index + 1, label[2:]) if label.startswith("B-") else None
    return spans


def seqeval_scores(pairs, average):
    gold, predicted = sides(pairs)
    return precision_recall_fscore_support(
        gold, predicted, scheme=IOB2, average=average, zero_division=0
    )


def test_iob2_reader_by_hand():
    labels = ["I-NAME", "B-NAME", "I-NAME", "I-EMAIL", "B-EMAIL", "B-EMAIL", "O", "I-EMAIL"]
    assert read_iob2(labels) == [Span(1, 3, "NAME"), Span(4, 5, "EMAIL"), Span(5, 6, "EMAIL")]


@given(label_pairs())
def test_micro_average_agrees_with_seqeval(pairs):
    spans = [(read_iob2(gold), read_iob2(predicted)) for gold, predicted in pairs]
    *expected, support = seqeval_scores(pairs, "micro")
    gold, predicted = sides(spans)
    assert scores(gold, predicted) == pytest.approx(tuple(expected))
    assert counts(gold, predicted)[:, GOLD].sum() == support


@given(label_pairs())
def test_types_agree_with_seqeval(pairs):
    spans = [(read_iob2(gold), read_iob2(predicted)) for gold, predicted in pairs]
    tables = by_type(*sides(spans))
    expected = zip(*seqeval_scores(pairs, None), strict=True)
    for table, (*numbers, support) in zip(tables.values(), expected, strict=True):
        assert prf(table.sum(axis=0)) == pytest.approx(tuple(numbers))
        assert table[:, GOLD].sum() == support


# Outcomes

NAME = Span(10, 20, "NAME")


@pytest.mark.parametrize(
    ("predicted", "outcome"),
    [
        (Span(10, 20, "NAME"), Outcome.CORRECT),
        (Span(10, 20, "EMAIL"), Outcome.WRONG_TYPE),
        (Span(10, 19, "NAME"), Outcome.WRONG_BOUNDARY),
        (Span(19, 30, "NAME"), Outcome.WRONG_BOUNDARY),
        (Span(0, 40, "NAME"), Outcome.WRONG_BOUNDARY),
        (Span(5, 11, "EMAIL"), Outcome.WRONG_BOTH),
    ],
)
def test_a_pair_is_one_finding(predicted, outcome):
    assert compare([NAME], [predicted]) == [Finding(outcome, NAME, predicted)]


@pytest.mark.parametrize("neighbour", [Span(0, 10, "NAME"), Span(20, 25, "NAME")])
def test_touching_spans_do_not_overlap(neighbour):
    outcomes = Counter(finding.outcome for finding in compare([NAME], [neighbour]))
    assert outcomes == {Outcome.MISSED: 1, Outcome.SPURIOUS: 1}


def test_missed_and_spurious_spans():
    assert compare([NAME], []) == [Finding(Outcome.MISSED, NAME, None)]
    assert compare([], [NAME]) == [Finding(Outcome.SPURIOUS, None, NAME)]
    assert compare([], []) == []


def test_exact_matches_come_first():
    nested = Span(10, 30, "NAME")
    assert compare([NAME, nested], [NAME]) == [
        Finding(Outcome.CORRECT, NAME, NAME),
        Finding(Outcome.MISSED, nested, None),
    ]


def test_same_offsets_come_before_overlaps_of_the_same_type():
    relabelled, shifted = Span(10, 20, "EMAIL"), Span(9, 20, "NAME")
    assert compare([NAME], [shifted, relabelled]) == [
        Finding(Outcome.SPURIOUS, None, shifted),
        Finding(Outcome.WRONG_TYPE, NAME, relabelled),
    ]


def test_overlaps_of_the_same_type_come_before_larger_ones():
    small, large = Span(10, 11, "NAME"), Span(11, 20, "EMAIL")
    assert compare([NAME], [small, large]) == [
        Finding(Outcome.WRONG_BOUNDARY, NAME, small),
        Finding(Outcome.SPURIOUS, None, large),
    ]


@pytest.mark.parametrize("type", ["NAME", "EMAIL"])
def test_larger_overlaps_come_first(type):
    left, right = Span(8, 13, type), Span(13, 22, type)
    findings = compare([NAME], [left, right])
    assert [finding.predicted for finding in findings if finding.gold] == [right]


@pytest.mark.parametrize("type", ["NAME", "EMAIL"])
def test_the_leftmost_of_equal_overlaps_comes_first(type):
    left, right = Span(10, 15, type), Span(15, 20, type)
    findings = compare([NAME], [right, left])
    assert [finding.predicted for finding in findings if finding.gold] == [left]


def test_a_split_span_is_one_boundary_error_and_one_spurious():
    first, last = Span(10, 14, "NAME"), Span(15, 20, "NAME")
    assert compare([NAME], [first, last]) == [
        Finding(Outcome.SPURIOUS, None, first),
        Finding(Outcome.WRONG_BOUNDARY, NAME, last),
    ]


def stagewise(gold, predicted):
    """The matching rule, stage by stage: always the best remaining pair."""
    missed, spurious = set(gold) - set(predicted), set(predicted) - set(gold)
    pairs = []

    def shared(g, p):
        return len(set(range(g.start, g.end)) & set(range(p.start, p.end)))

    stages = [
        (lambda g, p: g[:2] == p[:2], Outcome.WRONG_TYPE),
        (lambda g, p: g.type == p.type and shared(g, p), Outcome.WRONG_BOUNDARY),
        (shared, Outcome.WRONG_BOTH),
    ]
    for fits, outcome in stages:
        while best := min(
            (
                (-shared(g, p), max(g[0], p[0]), g, p)
                for g in missed
                for p in spurious
                if fits(g, p)
            ),
            default=None,
        ):
            *_, g, p = best
            missed.remove(g)
            spurious.remove(p)
            pairs.append(Finding(outcome, g, p))
    return (
        pairs
        + [Finding(Outcome.CORRECT, span, span) for span in set(gold) & set(predicted)]
        + [Finding(Outcome.MISSED, span, None) for span in missed]
        + [Finding(Outcome.SPURIOUS, None, span) for span in spurious]
    )


@given(span_sets, span_sets)
def test_compare_follows_the_matching_rule(gold, predicted):
    assert Counter(compare(gold, predicted)) == Counter(stagewise(gold, predicted))


@given(span_sets, span_sets)
def test_every_span_is_in_exactly_one_finding(gold, predicted):
    findings = compare(gold, predicted)
    assert sorted(f.gold for f in findings if f.gold) == sorted(set(gold))
    assert sorted(f.predicted for f in findings if f.predicted) == sorted(set(predicted))


@given(span_sets, span_sets)
def test_missed_and_spurious_spans_do_not_overlap(gold, predicted):
    findings = compare(gold, predicted)
    missed = [f.gold for f in findings if f.outcome == Outcome.MISSED]
    spurious = [f.predicted for f in findings if f.outcome == Outcome.SPURIOUS]
    for m in missed:
        for s in spurious:
            assert m.end <= s.start or s.end <= m.start


@given(span_sets, span_sets)
def test_findings_are_sorted_by_position(gold, predicted):
    positions = [(f.gold or f.predicted)[:2] for f in compare(gold, predicted)]
    assert positions == sorted(positions)


@given(flat_spans(), flat_spans())
def test_swapping_sides_swaps_missed_and_spurious(gold, predicted):
    swapped = {Outcome.MISSED: Outcome.SPURIOUS, Outcome.SPURIOUS: Outcome.MISSED}
    mirrored = [
        Finding(swapped.get(f.outcome, f.outcome), f.predicted, f.gold)
        for f in compare(gold, predicted)
    ]
    assert Counter(mirrored) == Counter(compare(predicted, gold))


# Counts of outcomes


def test_outcomes_by_hand():
    gold = [[NAME, Span(30, 35, "EMAIL")], [NAME], [NAME]]
    predicted = [[NAME], [Span(10, 20, "EMAIL"), Span(40, 50, "NAME")], [Span(12, 20, "NAME")]]
    assert count_outcomes(gold, predicted) == {
        "correct": 1,
        "wrong_type": 1,
        "wrong_boundary": 1,
        "wrong_both": 0,
        "missed": 1,
        "spurious": 1,
    }


@given(documents)
def test_outcomes_count_every_span_once(pairs):
    gold, predicted = sides(pairs)
    outcomes = count_outcomes(gold, predicted)
    correct, in_gold, in_predicted = counts(gold, predicted).sum(axis=0)
    assert list(outcomes) == [outcome.value for outcome in Outcome]
    assert outcomes["correct"] == correct
    matched = sum(outcomes.values()) - outcomes["missed"] - outcomes["spurious"]
    assert matched + outcomes["missed"] == in_gold
    assert matched + outcomes["spurious"] == in_predicted


SCRIPT = """
import random
from wxb.tasks.ner.metrics import by_type
from wxb.tasks.ner.metrics.outcomes import count_outcomes, compare
from wxb.tasks.ner.record.spans import Span

rng = random.Random(7)
def side():
    starts = [rng.randrange(60) for _ in range(30)]
    return [Span(start, start + rng.randint(1, 9), rng.choice("ABC")) for start in starts]
gold, predicted = [side() for _ in range(20)], [side() for _ in range(20)]
print([compare(g, p) for g, p in zip(gold, predicted)])
print(count_outcomes(gold, predicted))
print({name: table.tolist() for name, table in by_type(gold, predicted).items()})
"""


def test_output_does_not_depend_on_the_hash_seed():
    outputs = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    ]
    assert outputs[0] == outputs[1]
    assert "Finding" in outputs[0]
