"""Recognizers of spans: batches that change nothing, overlaps, and the threshold."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from wxb.core.params.experiments import Prediction
from wxb.corpora.records import Record
from wxb.corpora.text.tokenizers import train
from wxb.tasks.ner.models.predictor import THRESHOLDS, Recognizer, ScoredSpan, resolve_overlaps
from wxb.tasks.ner.record import Span, f1

TEXTS = ["one", "", "one two three four", "two", " ", "one two", "three"] * 3
TOKENIZER = train("byte-level-bpe", 300, TEXTS)
SETTINGS = {"types": ["A"], "threshold": 0.0, "max_length": 3, "stride": 1}


class FirstCharacter(Recognizer):
    """Finds the first character of every text, with a score proportional to the text's length."""

    prediction = Prediction(batch_size=4)
    load_model = None

    def predict_windows(self, inputs, indices):
        texts, _, windows = inputs
        return [texts[windows.rows[i]] for i in indices]

    def merge_windows(self, inputs, outputs):
        texts, _, windows = inputs
        for row, parts in outputs.items():
            assert list(parts) == np.flatnonzero(windows.rows == row).tolist()
            assert set(parts.values()) == {texts[row]}
        lengths = [len(texts[row]) for row in outputs]
        return [[ScoredSpan(Span(0, 1, "A"), n / 20)] if n else [] for n in lengths]


@pytest.fixture
def recognizer():
    return FirstCharacter(torch.nn.Linear(1, 1), TOKENIZER, **SETTINGS)


def test_predict_drops_candidates_below_the_threshold(recognizer):
    assert recognizer.predict(TEXTS) == recognizer.scored_spans(TEXTS, caption="test")
    recognizer.threshold = len("three") / 20
    assert [len(spans) for spans in recognizer.predict(TEXTS)] == [0, 0, 1, 0, 0, 1, 1] * 3


scored_spans = st.builds(
    lambda start, length, kind, score: ScoredSpan(Span(start, start + length, kind), score),
    st.integers(0, 20),
    st.integers(1, 8),
    st.sampled_from("AB"),
    st.sampled_from([0.2, 0.5, 0.9]),
)


@given(st.lists(scored_spans, max_size=12), st.randoms())
def test_of_overlapping_spans_the_highest_score_wins(spans, random):
    kept = resolve_overlaps(spans)
    assert all(left.span.end <= right.span.start for left, right in pairwise(kept))
    assert set(kept) <= set(spans)
    for (start, end, _), score in set(spans) - set(kept):
        over = [other for other in kept if start < other.span.end and other.span.start < end]
        assert any(other.score >= score for other in over)
    assert resolve_overlaps(random.sample(spans, len(spans))) == kept
    # A threshold may be applied before or after.
    above = [span for span in spans if span.score > 0.2]
    assert resolve_overlaps(above) == [span for span in kept if span.score > 0.2]


def test_of_equal_scores_the_first_and_then_the_longest_span_wins():
    spans = [Span(1, 9, "A"), Span(0, 2, "A"), Span(0, 3, "B"), Span(0, 3, "A"), Span(3, 4, "A")]
    kept = resolve_overlaps([ScoredSpan(span, 0.5) for span in spans])
    assert [span for span, _ in kept] == [Span(0, 3, "A"), Span(3, 4, "A")]


def test_predictions_have_no_overlaps(recognizer):
    spans = [Span(4, 6, "A"), Span(0, 3, "A"), Span(1, 5, "A")]
    scored = [ScoredSpan(s, score) for s, score in zip(spans, (0.5, 0.6, 0.7), strict=True)]
    recognizer.merge_windows = lambda *_: [scored]
    assert recognizer.scored_spans(["one"], caption="test") == recognizer.predict(["one"])
    assert recognizer.predict(["one"]) == [[scored[2]]]


scored_rows = st.lists(
    st.lists(
        st.tuples(st.integers(0, 9), st.sampled_from([*THRESHOLDS.tolist(), 0.333, 1.0])),
        max_size=6,
        unique_by=lambda pair: pair[0],
    ),
    max_size=4,
)


@settings(deadline=None)
@given(scored_rows, st.sets(st.integers(0, 9)))
def test_the_threshold_is_the_lowest_of_the_best(rows, gold_starts):
    candidates = [
        [ScoredSpan(Span(start, start + 1, "AGE"), score) for start, score in row] for row in rows
    ]
    gold = [[Span(start, start + 1, "AGE") for start in sorted(gold_starts)] for _ in rows]
    recognizer = FirstCharacter(torch.nn.Linear(1, 1), TOKENIZER, **SETTINGS)
    recognizer.scored_spans = lambda texts, caption: candidates
    texts = [""] * len(rows)
    records = [Record("", "", tuple(spans), None, "") for spans in gold]
    recognizer.calibrate(records, caption="test")

    def score(threshold):
        recognizer.threshold = threshold
        predicted = [[scored.span for scored in spans] for spans in recognizer.predict(texts)]
        return f1(gold, predicted)

    threshold = recognizer.threshold
    scores = {float(t): score(float(t)) for t in THRESHOLDS}
    assert threshold == min(t for t, score in scores.items() if score == max(scores.values()))
