import pytest
from hypothesis import given
from hypothesis import strategies as st

from wxb.tasks.ner.metrics import Judged
from wxb.tasks.ner.metrics.outcomes import Outcome
from wxb.tasks.ner.page.examples import KEPT, NUMBER, PLAIN, examples, pieces
from wxb.tasks.ner.record.spans import Span


@st.composite
def texts_and_spans(draw):
    text = draw(st.text(min_size=1, max_size=PLAIN))
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
    cut = pieces(text, spans)
    assert "".join(piece.text for piece in cut) == text
    labels = sorted(label for piece in cut for label in piece.labels)
    assert labels == sorted((span.type, outcome) for span, outcome in spans)
    reached = 0
    for piece in cut:
        reached += len(piece.text)
        ending = sorted((span.type, outcome) for span, outcome in spans if span.end == reached)
        assert sorted(piece.labels) == ending
        assert (piece.outcome is None) <= (not piece.labels)


def test_only_text_without_a_span_is_shortened():
    text = "a" * 500 + "c" * 500 + "b" * 1000
    before, marked = pieces(text, [(Span(1000, 2000, "X"), Outcome.MISSED)])
    assert len(before.text) < PLAIN
    assert before.text == "a" * KEPT + " … " + "c" * KEPT
    assert pieces("a" * PLAIN, [])[0].text == "a" * PLAIN
    assert marked == ("b" * 1000, Outcome.MISSED, [("X", Outcome.MISSED)])


def judged(number: int, gold: list[Span], predicted: list[Span]) -> Judged:
    return Judged(str(number), "0123456789", tuple(gold), tuple(predicted), ())


def test_examples_show_every_kind_of_error_before_a_second_of_any():
    gold = [Span(0, 4, "X")]
    answers = {
        "missed": [],
        "wrong_type": [Span(0, 4, "Y")],
        "wrong_boundary": [Span(0, 3, "X")],
        "wrong_both": [Span(0, 3, "Y")],
        "spurious": [*gold, Span(5, 6, "X")],
    }
    records = [judged(99, gold, gold), *(judged(i, gold, []) for i in range(50))]
    records += [judged(50 + i, gold, found) for i, found in enumerate(answers.values())]
    shown = examples(records, number=5)
    kinds = {
        piece.outcome
        for example in shown
        for piece in (*example.gold, *example.predicted)
        if piece.outcome not in (None, "correct")
    }
    assert kinds == set(answers)


@pytest.mark.parametrize("records", [0, 3, 50])
def test_examples_are_as_many_as_there_are_up_to_the_number(records):
    right = [judged(i, [Span(0, 1, "X")], [Span(0, 1, "X")]) for i in range(records)]
    assert [example.id for example in examples(right)] == [
        str(i) for i in range(min(records, NUMBER))
    ]
