"""seqeval beside our scorer: the same where spans fall on tokens, and what tokens hide."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wxb.corpora.text.encoded import Encoded
from wxb.tasks.ner.metrics import counts, prf
from wxb.tasks.ner.record.spans import Span
from wxb.tasks.ner.tagging.seqeval_f1 import seqeval_f1

ANN, MET, BOB, DOT = (0, 3), (4, 7), (8, 11), (11, 12)  # the tokens of "Ann met Bob."


def encoded_of(*rows):
    """Tokens of several texts, each a list of (start, end)."""
    pairs = np.array([pair for row in rows for pair in row], np.int32).reshape(-1, 2)
    splits = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return Encoded(np.arange(len(pairs), dtype=np.int32), *pairs.T, splits)


def both(tokens, gold, predicted):
    """F1 of the spans of one text on its tokens, and on its characters."""
    of_characters = prf(counts([gold], [predicted]).sum(axis=0))[2]
    return seqeval_f1(encoded_of(tokens), [gold], [predicted]), of_characters


@st.composite
def texts(draw):
    """Tokens one after another, some of them blank, and spans of whole ones on both sides."""
    edges = sorted(draw(st.sets(st.integers(0, 20), max_size=12)))
    tokens = [*pairwise(edges)]

    def spans():
        cuts = sorted(draw(st.sets(st.sampled_from(edges), max_size=6))) if edges else []
        kinds = st.sampled_from(["AGE", "NAME"])
        return [Span(a, b, draw(kinds)) for a, b in pairwise(cuts) if draw(st.booleans())]

    blanks = draw(st.sets(st.integers(0, len(tokens))))
    laid = [
        pair
        for at, (start, end) in enumerate(tokens)
        for pair in ([(start, start)] * (at in blanks) + [(start, end)])
    ]
    return laid, spans(), spans()


@settings(deadline=None)  # the first example imports scikit-learn
@given(st.lists(texts(), min_size=1, max_size=5))
def test_where_spans_fall_on_tokens_it_is_ours(rows):
    tokens, gold, predicted = zip(*rows, strict=True)
    f1 = prf(counts(gold, predicted).sum(axis=0))[2]
    assert seqeval_f1(encoded_of(*tokens), gold, predicted) == pytest.approx(f1)


def test_a_part_of_a_token_counts_as_right():
    gold, found = [Span(0, 2, "NAME")], [Span(0, 3, "NAME")]
    assert both([ANN, MET, BOB, DOT], gold, found) == (1.0, 0.0)


def test_gold_that_no_token_covers_vanishes():
    gold, found = [Span(0, 3, "NAME"), Span(8, 11, "NAME")], [Span(0, 3, "NAME")]
    assert both([ANN, MET, DOT], gold, found) == (1.0, pytest.approx(2 / 3))


def test_gold_of_a_type_that_nothing_predicts_is_missed():
    gold, found = [Span(0, 3, "NAME"), Span(8, 11, "PET")], [Span(0, 3, "NAME")]
    f1 = pytest.approx(2 / 3)
    assert both([ANN, MET, BOB, DOT], gold, found) == (f1, f1)


def test_two_spans_that_touch_are_two():
    gold, found = [Span(0, 7, "NAME")], [Span(0, 3, "NAME"), Span(4, 7, "NAME")]
    assert both([ANN, MET], gold, found) == (0.0, 0.0)


def test_texts_without_spans_or_tokens_score_nothing():
    assert seqeval_f1(encoded_of([], [ANN]), [[], []], [[], []]) == 0.0
