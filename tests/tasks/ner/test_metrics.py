import warnings
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from seqeval.metrics.v1 import precision_recall_fscore_support
from seqeval.scheme import IOB2

from wxb.corpora.records import Record
from wxb.tasks.ner.metrics import Finding, Outcome, PredictionRow, Scorer, counts, findings
from wxb.tasks.ner.record import Span, f1

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


def rows_of(gold, predicted):
    pairs = zip(gold, predicted, strict=True)
    return [PredictionRow(str(n), "", (*g,), (*p,), ()) for n, (g, p) in enumerate(pairs)]


def scores(gold, predicted):
    scorer = Scorer()
    sums = scorer.sums(rows_of(gold, predicted))
    return {name: float(value) for name, value in scorer.scores(sums).items()}


def lists(counts):
    return {name: values.tolist() for name, values in counts.items()}


# Counts, precision, recall, F1


def test_counts_by_hand():
    gold = [[Span(0, 3, "NAME"), Span(5, 9, "EMAIL")], [], [Span(1, 2, "NAME")]]
    predicted = [[Span(0, 3, "NAME"), Span(5, 8, "EMAIL"), Span(9, 10, "NAME")], [], []]
    expected = {"correct": [1, 0, 0], "gold": [2, 0, 1], "predicted": [3, 0, 0]}
    assert lists(counts(gold, predicted)) == expected
    assert f1(gold, predicted) == 2 / 6


def test_duplicates_count_once_and_records_are_apart():
    span = Span(0, 3, "NAME")
    expected = {"correct": [1, 0], "gold": [1, 0], "predicted": [1, 1]}
    assert lists(counts([[span, span], []], [[span] * 3, [span]])) == expected


@pytest.mark.parametrize("score", [counts, f1])
def test_numbers_of_records_must_be_equal(score):
    with pytest.raises(ValueError, match="shorter"):
        score([[], []], [[]])


@pytest.mark.parametrize("sides", [([[]], [[]]), ([[Span(0, 1, "A")]], [[]])])
def test_zero_over_zero_is_zero_without_a_warning(sides):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert scores(*sides)["f1"] == f1(*sides) == 0


@given(documents)
def test_f1_is_the_harmonic_mean_and_each_type_is_scored_as_if_alone(pairs):
    gold, predicted = sides(pairs)
    ours = scores(gold, predicted)
    product, total = ours["precision"] * ours["recall"], ours["precision"] + ours["recall"]
    assert ours["f1"] == pytest.approx(2 * product / total if total else 0)
    assert ours["f1"] == f1(gold, predicted)
    tables = Scorer().details(rows_of(gold, predicted))["by_type"]
    assert [*tables] == sorted({s.type for side in (gold, predicted) for doc in side for s in doc})
    for name, table in tables.items():
        alone = [[[s for s in doc if s.type == name] for doc in side] for side in (gold, predicted)]
        assert {key: table[key] for key in ours} == pytest.approx(scores(*alone), abs=1e-6)
        assert table["support"] == sum(len({*spans}) for spans in alone[0])


def test_recall_of_mentions_with_and_without_training_examples():
    ann, bonn, nine = (Span(0, 3, "NAME"), Span(7, 11, "CITY"), Span(12, 13, "AGE"))
    train = [Record("0", "Ann 9", (Span(0, 3, "NAME"), Span(4, 5, "ROOM")), None, "g")]
    vocabulary = Scorer().vocabulary(train)
    assert vocabulary == {("Ann", "NAME"), ("9", "ROOM")}
    record = Record("1", "Ann in Bonn 9", (ann, bonn, nine), None, "g")
    (row,) = Scorer().rows([record], [[(ann, 0.9), (nine, 0.8)]], vocabulary)
    assert (row.gold, row.predicted, row.scores) == (record.gold, (ann, nine), (0.9, 0.8))
    assert row.seen == (True, False, False)
    details = Scorer().details([row])
    assert (details["recall_seen"], details["recall_unseen"]) == (1, 0.5)
    assert (details["support_seen"], details["support"], details["correct"]) == (1, 3, 2)
    assert "recall_seen" not in Scorer().details([row._replace(seen=(False,) * 3)])


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
    by_type = Scorer().details(rows_of(gold, predicted))["by_type"]
    tables = [{**scores(gold, predicted), "support": sum(map(len, gold))}, *by_type.values()]
    by_name = zip(*seqeval_scores(pairs, None), strict=True)
    for table, expected in zip(tables, [seqeval_scores(pairs, "micro"), *by_name], strict=True):
        ours = [table[key] for key in ("precision", "recall", "f1", "support")]
        assert ours == pytest.approx(expected, abs=1e-6)


# Outcomes

NAME = Span(10, 20, "NAME")


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
        while fitting := [(g, p) for g in missed for p in spurious if fits(g, p)]:
            g, p = min(fitting, key=lambda pair: (-shared(*pair), max(s.start for s in pair), pair))
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
def test_findings_follow_the_matching_rule(gold, predicted):
    found = findings(gold, predicted)
    assert Counter(found) == Counter(stagewise(gold, predicted))
    positions = [finding.gold or finding.predicted for finding in found]
    assert positions == sorted({*positions})


@given(documents)
def test_errors_are_the_outcomes_of_each_record(pairs):
    errors = Scorer().details(rows_of(*sides(pairs)))["errors"]
    assert list(errors) == [outcome.value for outcome in Outcome]
    found = [finding for gold, predicted in pairs for finding in findings(gold, predicted)]
    assert Counter(errors) == Counter(finding.outcome.value for finding in found)
