"""F1 by seqeval: equal to ours if spans end at token boundaries, and what tokens hide."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wxb.corpora.text.encoded import Encoded
from wxb.tasks.ner.metrics import counts, prf
from wxb.tasks.ner.metrics.seqeval_f1 import seqeval_f1
from wxb.tasks.ner.record.spans import Span

ANN, MET, BOB, DOT = (0, 3), (4, 7), (8, 11), (11, 12)  # the tokens of "Ann met Bob."


def encoded_of(*rows):
    """Tokens of several texts, each a list of (start, end)."""
    pairs = np.array([pair for row in rows for pair in row], np.int32).reshape(-1, 2)
    splits = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return Encoded(np.arange(len(pairs), dtype=np.int32), *pairs.T, splits)


def both(tokens, gold, predicted):
    """F1 of one text over tokens (seqeval) and over characters (ours)."""
    of_characters = prf(counts([gold], [predicted]).sum(axis=0))[2]
    return seqeval_f1(encoded_of(tokens), [gold], [predicted]), of_characters


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
    f1 = prf(counts(gold, predicted).sum(axis=0))[2]
    assert seqeval_f1(encoded_of(*tokens), gold, predicted) == pytest.approx(f1)


def test_seqeval_counts_a_part_of_a_token_as_correct():
    gold, predicted = [Span(0, 2, "NAME")], [Span(0, 3, "NAME")]
    assert both([ANN, MET, BOB, DOT], gold, predicted) == (1.0, 0.0)


def test_seqeval_ignores_gold_spans_without_tokens():
    gold, predicted = [Span(0, 3, "NAME"), Span(8, 11, "NAME")], [Span(0, 3, "NAME")]
    assert both([ANN, MET, DOT], gold, predicted) == (1.0, pytest.approx(2 / 3))


def test_gold_spans_of_an_unpredicted_type_are_missed():
    gold, predicted = [Span(0, 3, "NAME"), Span(8, 11, "PET")], [Span(0, 3, "NAME")]
    f1 = pytest.approx(2 / 3)
    assert both([ANN, MET, BOB, DOT], gold, predicted) == (f1, f1)


def test_adjacent_spans_are_not_merged():
    gold, predicted = [Span(0, 7, "NAME")], [Span(0, 3, "NAME"), Span(4, 7, "NAME")]
    assert both([ANN, MET], gold, predicted) == (0.0, 0.0)


def test_texts_without_spans_or_tokens_score_zero():
    assert seqeval_f1(encoded_of([], [ANN]), [[], []], [[], []]) == 0.0
