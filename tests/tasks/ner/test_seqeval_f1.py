"""F1 by seqeval: equal to ours if spans end at token boundaries, and what tokens hide."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tasks.ner.test_bio import encoded_of
from wxb.tasks.ner.models.predictor import seqeval_f1
from wxb.tasks.ner.record import Span, f1

ANN, MET, BOB, DOT = (0, 3), (4, 7), (8, 11), (11, 12)  # the tokens of "Ann met Bob."
NAME = Span(0, 3, "NAME")


@st.composite
def texts(draw):
    """Adjacent tokens, some blank, with gold and predicted spans of whole tokens."""
    edges = sorted(draw(st.sets(st.integers(0, 20), max_size=12)))
    tokens = [*pairwise(edges)]

    def spans():
        cuts = sorted(draw(st.sets(st.sampled_from(edges), max_size=6))) if edges else []
        kinds = st.sampled_from(["AGE", "NAME"])
        return [Span(a, b, draw(kinds)) for a, b in pairwise(cuts) if draw(st.booleans())]

    blanks = draw(st.sets(st.integers(0, len(tokens))))
    with_blanks = [
        pair
        for index, (start, end) in enumerate(tokens)
        for pair in ([(start, start)] * (index in blanks) + [(start, end)])
    ]
    return with_blanks, spans(), spans()


@settings(deadline=None)  # the first example imports scikit-learn
@given(st.lists(texts(), min_size=1, max_size=5))
def test_for_spans_of_whole_tokens_seqeval_agrees_with_us(rows):
    tokens, gold, predicted = zip(*rows, strict=True)
    assert seqeval_f1(encoded_of(tokens), gold, predicted) == pytest.approx(f1(gold, predicted))


TWO_THIRDS = pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("tokens", "gold", "predicted", "expected"),
    [
        # A part of a token counts as the token.
        ([ANN, MET, BOB, DOT], [Span(0, 2, "NAME")], [Span(0, 3, "NAME")], (1.0, 0.0)),
        # Gold spans without tokens are ignored.
        ([ANN, MET, DOT], [NAME, Span(8, 11, "NAME")], [NAME], (1.0, TWO_THIRDS)),
        # Gold spans of an unpredicted type are missed.
        ([ANN, MET, BOB, DOT], [NAME, Span(8, 11, "PET")], [NAME], (TWO_THIRDS, TWO_THIRDS)),
        # Adjacent spans are not merged.
        ([ANN, MET], [Span(0, 7, "NAME")], [NAME, Span(4, 7, "NAME")], (0.0, 0.0)),
        ([], [], [], (0.0, 0.0)),
    ],
)
def test_f1_of_tokens_and_of_characters(tokens, gold, predicted, expected):
    of_tokens = seqeval_f1(encoded_of([tokens]), [gold], [predicted])
    assert (of_tokens, f1([gold], [predicted])) == expected
