import warnings
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from seqeval.metrics.v1 import precision_recall_fscore_support
from seqeval.scheme import IOB2

from wxb.tasks.ner.metrics import CORRECT, GOLD, PREDICTED, by_type, counts, prf
from wxb.tasks.ner.metrics.outcomes import Finding, Outcome, compare, count_outcomes
from wxb.tasks.ner.record.spans import Span

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


def sides(pairs):
    return [gold for gold, _ in pairs], [predicted for _, predicted in pairs]


# Counts


def test_counts_by_hand():
    gold = [[Span(0, 3, "NAME"), Span(5, 9, "EMAIL")], [], [Span(1, 2, "NAME")]]
    predicted = [[Span(0, 3, "NAME"), Span(5, 8, "EMAIL"), Span(9, 10, "NAME")], [], []]
    table = counts(gold, predicted)
    assert table.tolist() == [[1, 2, 3], [0, 0, 0], [0, 1, 0]]
    assert table.dtype == np.int64
    assert (CORRECT, GOLD, PREDICTED) == (0, 1, 2)


@pytest.mark.parametrize(
    "predicted",
    [Span(0, 4, "NAME"), Span(1, 3, "NAME"), Span(0, 3, "EMAIL"), Span(0, 3, "name")],
)
def test_only_the_exact_span_is_correct(predicted):
    assert counts([[Span(0, 3, "NAME")]], [[predicted]]).tolist() == [[0, 1, 1]]


def test_duplicates_count_once_and_documents_are_apart():
    span = Span(0, 3, "NAME")
    assert counts([[span, span], []], [[span] * 3, [span]]).tolist() == [[1, 1, 1], [0, 0, 1]]


@pytest.mark.parametrize("score", [counts, count_outcomes])
def test_numbers_of_documents_must_be_equal(score):
    with pytest.raises(ValueError, match="shorter"):
        score([[], []], [[]])


# Precision, recall, F1


@pytest.mark.parametrize("empty", [[0, 0, 0], [0, 5, 0], [0, 0, 5], [0, 5, 5]])
def test_zero_over_zero_is_zero_without_a_warning(empty):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert prf(empty) == (0.0, 0.0, 0.0)


number = st.integers(0, 9)


@given(st.lists(st.tuples(number, number, number), min_size=1, max_size=8))
def test_prf_is_vectorised_over_leading_axes(rows):
    table = np.array([(c, c + g, c + p) for c, g, p in rows])
    for name, column in enumerate(prf(table)):
        assert column.tolist() == [prf(row)[name] for row in table]
    nested = prf(np.stack([table, table])[None])
    assert [axis.shape for axis in nested] == [(1, 2, len(rows))] * 3


@given(st.integers(1, 99), st.integers(0, 99), st.integers(0, 99))
def test_f1_is_the_harmonic_mean(correct, missed, spurious):
    precision, recall, f1 = prf([correct, correct + missed, correct + spurious])
    assert precision == pytest.approx(correct / (correct + spurious))
    assert recall == pytest.approx(correct / (correct + missed))
    assert f1 == pytest.approx(2 * precision * recall / (precision + recall))


@given(documents)
def test_each_type_is_counted_as_if_alone(pairs):
    gold, predicted = sides(pairs)
    tables = by_type(gold, predicted)
    assert [*tables] == sorted({s.type for side in (gold, predicted) for doc in side for s in doc})
    for name, table in tables.items():
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


@given(label_pairs())
def test_scores_agree_with_seqeval(pairs):
    gold, predicted = sides([(read_iob2(gold), read_iob2(labels)) for gold, labels in pairs])
    tables = [counts(gold, predicted), *by_type(gold, predicted).values()]
    by_name = zip(*seqeval_scores(pairs, None), strict=True)
    for table, (*expected, support) in zip(
        tables, [seqeval_scores(pairs, "micro"), *by_name], strict=True
    ):
        assert prf(table.sum(axis=0)) == pytest.approx(tuple(expected))
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
@example([NAME, Span(10, 30, "NAME")], [NAME])
@example([NAME], [Span(9, 20, "NAME"), Span(10, 20, "EMAIL")])
@example([NAME], [Span(10, 11, "NAME"), Span(11, 20, "EMAIL")])
@example([NAME], [Span(8, 13, "NAME"), Span(13, 22, "NAME")])
@example([NAME], [Span(15, 20, "EMAIL"), Span(10, 15, "EMAIL")])
@example([NAME], [Span(0, 10, "NAME"), Span(20, 25, "NAME")])
def test_compare_follows_the_matching_rule(gold, predicted):
    findings = compare(gold, predicted)
    assert Counter(findings) == Counter(stagewise(gold, predicted))
    positions = [finding.gold or finding.predicted for finding in findings]
    assert positions == sorted({*positions})


@given(documents)
def test_outcomes_are_those_of_each_document(pairs):
    outcomes = count_outcomes(*sides(pairs))
    assert list(outcomes) == [outcome.value for outcome in Outcome]
    findings = [finding for gold, predicted in pairs for finding in compare(gold, predicted)]
    assert Counter(outcomes) == Counter(finding.outcome.value for finding in findings)
