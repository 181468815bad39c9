"""What all recognisers share: batches that change nothing, disjoint spans, and the threshold."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from wxb.core.params.experiments import Prediction
from wxb.corpora.records import Record
from wxb.corpora.text.tokenizers import train
from wxb.tasks.ner import metrics as scorer
from wxb.tasks.ner.predictor import THRESHOLDS, Recognizer, ScoredSpan, disjoint
from wxb.tasks.ner.record.spans import Span

TEXTS = ["one", "", "one two three four", "two", " ", "one two", "three"] * 3
TOKENIZER = train("byte-level-bpe", 300, TEXTS)


SETTINGS = {"types": ["A"], "threshold": 0.0, "max_length": 3, "stride": 1}


class Counting(Recognizer):
    """Finds the first character of every text, as sure of it as the text is long."""

    prediction = Prediction(batch_size=4)
    load_model = None

    def predict_windows(self, encoded, windows, chosen, texts):
        self.lengths.append([int(windows.lasts[w] - windows.firsts[w]) for w in chosen])
        return [texts[windows.rows[w]] for w in chosen]

    def merge_windows(self, encoded, windows, found, text):
        assert list(found) == sorted(found)
        assert set(found.values()) == {text}
        row = windows.rows[next(iter(found))]
        assert list(found) == np.flatnonzero(windows.rows == row).tolist()
        return [ScoredSpan(Span(0, 1, "A"), len(text) / 20)] if text else []


@pytest.fixture
def recognizer():
    made = Counting(torch.nn.Linear(1, 1), TOKENIZER, **SETTINGS)
    made.lengths = []
    return made


def test_every_text_gets_its_own_spans_in_the_order_given(recognizer):
    found = recognizer.candidates(TEXTS, label="test")
    assert [[score for _, score in spans] for spans in found] == [
        [len(text) / 20] if text else [] for text in TEXTS
    ]


def test_windows_of_about_one_length_share_a_batch(recognizer):
    recognizer.candidates(TEXTS, label="test")
    assert {len(batch) for batch in recognizer.lengths[:-1]} == {4}
    flat = [length for batch in recognizer.lengths for length in batch]
    assert flat == sorted(flat)
    assert len(flat) > len(TEXTS)
    assert max(flat) == recognizer.settings["max_length"] - 1  # beside it stands <s>


def test_no_text_is_no_batch(recognizer):
    assert recognizer.predict([]) == []
    assert recognizer.lengths == []


def test_the_model_is_set_to_evaluation():
    model = torch.nn.Linear(1, 1).train()
    assert not Counting(model, TOKENIZER, **SETTINGS).model.training


def test_predict_keeps_the_candidates_that_reach_the_threshold(recognizer):
    assert recognizer.predict(TEXTS) == recognizer.candidates(TEXTS, label="test")
    recognizer.threshold = len("three") / 20
    assert [len(spans) for spans in recognizer.predict(TEXTS)] == [0, 0, 1, 0, 0, 1, 1] * 3


scored_spans = st.builds(
    lambda start, length, kind, score: ScoredSpan(Span(start, start + length, kind), score),
    st.integers(0, 20),
    st.integers(1, 8),
    st.sampled_from("AB"),
    st.sampled_from([0.2, 0.5, 0.9]),
)


def overlap(one, other):
    return one.span.start < other.span.end and other.span.start < one.span.end


@given(st.lists(scored_spans, max_size=12), st.randoms())
def test_of_spans_that_overlap_the_surer_is_kept(found, chance):
    kept = disjoint(found)
    assert all(one.span.end <= other.span.start for one, other in pairwise(kept))
    assert set(kept) <= set(found)
    for one in set(found) - set(kept):
        assert any(overlap(one, other) and other.score >= one.score for other in kept)
    assert disjoint(chance.sample(found, len(found))) == kept
    surer = [one for one in found if one.score > 0.2]
    assert disjoint(surer) == [one for one in kept if one.score > 0.2]  # as a threshold has it


def test_of_equally_sure_spans_the_first_and_then_the_longest_is_kept():
    spans = [Span(1, 9, "A"), Span(0, 2, "A"), Span(0, 3, "B"), Span(0, 3, "A"), Span(3, 4, "A")]
    kept = disjoint([ScoredSpan(span, 0.5) for span in spans])
    assert [span for span, _ in kept] == [Span(0, 3, "A"), Span(3, 4, "A")]


def test_spans_of_any_recognizer_are_disjoint(recognizer):
    spans = [Span(4, 6, "A"), Span(0, 3, "A"), Span(1, 5, "A")]
    scored = [ScoredSpan(s, score) for s, score in zip(spans, (0.5, 0.6, 0.7), strict=True)]
    recognizer.merge_windows = lambda *_: scored
    assert recognizer.candidates(["one"], label="test") == recognizer.predict(["one"])
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
def test_the_threshold_is_the_lowest_of_the_best(rows, right):
    found = [[ScoredSpan(Span(at, at + 1, "AGE"), score) for at, score in row] for row in rows]
    gold = [[Span(at, at + 1, "AGE") for at in sorted(right)] for _ in rows]
    recognizer = Counting(torch.nn.Linear(1, 1), TOKENIZER, **SETTINGS)
    recognizer.candidates = lambda texts, label: found
    texts = [""] * len(rows)
    records = [Record("", "", tuple(spans), None, "") for spans in gold]
    recognizer.calibrate(records, label="test")

    def f1(threshold):
        recognizer.threshold = threshold
        kept = [[scored.span for scored in spans] for spans in recognizer.predict(texts)]
        return scorer.prf(scorer.counts(gold, kept).sum(axis=0))[2]

    chosen = recognizer.threshold
    scores = {float(threshold): f1(float(threshold)) for threshold in THRESHOLDS}
    assert chosen == min(t for t, score in scores.items() if score == max(scores.values()))


def test_zero_is_among_the_thresholds_and_one_is_not():
    assert THRESHOLDS[0] == 0
    assert np.all(np.diff(THRESHOLDS) > 0)
    assert THRESHOLDS[-1] < 1
