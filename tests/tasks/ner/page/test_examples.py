import pytest
from hypothesis import given
from hypothesis import strategies as st

from wxb.tasks.ner.metrics import PredictionRow
from wxb.tasks.ner.metrics.outcomes import Outcome
from wxb.tasks.ner.page.examples import COUNT, GAP_EDGE, MAX_GAP, examples, pieces
from wxb.tasks.ner.record.spans import Span


@st.composite
def texts_and_spans(draw):
    text = draw(st.text(min_size=1, max_size=MAX_GAP))
    edges = st.integers(0, len(text) - 1)
    spans = []
    for _ in range(draw(st.integers(0, 4))):
        start = draw(edges)
        end = draw(st.integers(start + 1, len(text)))
        spans.append((Span(start, end, draw(st.sampled_from("AB"))), Outcome.CORRECT))
    return text, spans


@given(texts_and_spans())
def test_pieces_lose_no_character_and_label_every_span_once(drawn):
    text, spans = drawn
    parts = pieces(text, spans)
    assert "".join(piece.text for piece in parts) == text
    labels = sorted(label for piece in parts for label in piece.labels)
    assert labels == sorted((span.type, outcome) for span, outcome in spans)
    end = 0
    for piece in parts:
        end += len(piece.text)
        ending = sorted((span.type, outcome) for span, outcome in spans if span.end == end)
        assert sorted(piece.labels) == ending
        assert (piece.outcome is None) <= (not piece.labels)


def test_only_text_without_a_span_is_shortened():
    text = "a" * 500 + "c" * 500 + "b" * 1000
    before, marked = pieces(text, [(Span(1000, 2000, "X"), Outcome.MISSED)])
    assert len(before.text) < MAX_GAP
    assert before.text == "a" * GAP_EDGE + " … " + "c" * GAP_EDGE
    assert pieces("a" * MAX_GAP, [])[0].text == "a" * MAX_GAP
    assert marked == ("b" * 1000, Outcome.MISSED, [("X", Outcome.MISSED)])


def row(index: int, gold: list[Span], predicted: list[Span]) -> PredictionRow:
    return PredictionRow(str(index), "0123456789", tuple(gold), tuple(predicted), ())


def test_examples_show_every_kind_of_error_once_first():
    gold = [Span(0, 4, "X")]
    predictions = {
        "missed": [],
        "wrong_type": [Span(0, 4, "Y")],
        "wrong_boundary": [Span(0, 3, "X")],
        "wrong_both": [Span(0, 3, "Y")],
        "spurious": [*gold, Span(5, 6, "X")],
    }
    rows = [row(99, gold, gold), *(row(i, gold, []) for i in range(50))]
    rows += [row(50 + i, gold, predicted) for i, predicted in enumerate(predictions.values())]
    kinds = {
        piece.outcome
        for example in examples(rows, count=5)
        for piece in (*example.gold, *example.predicted)
        if piece.outcome not in (None, "correct")
    }
    assert kinds == set(predictions)


@pytest.mark.parametrize("number", [0, 3, 50])
def test_correct_records_fill_up_the_examples(number):
    correct = [row(i, [Span(0, 1, "X")], [Span(0, 1, "X")]) for i in range(number)]
    assert [example.id for example in examples(correct)] == [
        str(i) for i in range(min(number, COUNT))
    ]
