from itertools import pairwise
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tasks.classification import trained
from tests.tasks.classification.trained import RECORDS, TEXTS
from wxb.corpora.text import tokenizers
from wxb.corpora.text.encoded import Encoded
from wxb.corpora.text.saved import SavedTokenizer
from wxb.project.trained import load
from wxb.tasks.classification import predictor as shared
from wxb.tasks.classification.encoder.method import Method as Encoder
from wxb.tasks.classification.metrics import calibration
from wxb.tasks.classification.recurrent.method import Method as Recurrent
from wxb.tasks.classification.tfidf.method import Method as Tfidf

METHODS = {
    "cls": (Encoder, trained.encoder("cls"), "wordpiece"),
    "mean": (Encoder, trained.encoder("mean"), "wordpiece"),
    "recurrent": (Recurrent, trained.recurrent(), "words"),
    "tfidf": (Tfidf, trained.tfidf(), "words"),
}


@pytest.fixture(scope="module", params=METHODS)
def both(request, tmp_path_factory):
    """A predictor after training, the same after saving and loading, and its folder."""
    method, experiment, kind = METHODS[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    return *trained.train(method, experiment, folder, kind), folder / "model"


def test_training_works_and_a_loaded_model_predicts_the_same(both):
    trained, loaded, folder = both
    texts = [text for text, _ in TEXTS]
    predictions = loaded.predict(texts)
    labels = [prediction.label for prediction in predictions]
    assert np.mean(np.array(labels) == [record.gold for record in RECORDS]) > 0.9
    for expected, prediction in zip(trained.predict(texts), predictions, strict=True):
        assert expected.probabilities == pytest.approx(prediction.probabilities, abs=1e-4)
    assert [prediction.label for prediction in load(folder).predict(texts)] == labels
    assert loaded.size() >= loaded.size(trainable=True) > 0


def test_probabilities_sum_to_one(both):
    _, loaded, _ = both
    (prediction,) = loaded.predict(["The film today was lovely."])
    assert sum(prediction.probabilities.values()) == pytest.approx(1, abs=1e-5)
    row = loaded.describe("", prediction)
    assert next(iter(row["probabilities"])) == row["label"] == prediction.label == "good"
    assert loaded.show("The film today was lovely.", prediction).startswith("good ")
    assert loaded.predict([]) == []


def test_a_batch_gives_the_predictions_of_single_texts(both):
    _, loaded, _ = both
    texts = [
        "The film today was lovely.",
        "dull",
        "",
        "The play today was weak. " * 20,
        "unknownword",
    ]
    together = loaded.predict(texts)
    for text, expected in zip(texts, together, strict=True):
        (alone,) = loaded.predict([text])
        assert alone.probabilities == pytest.approx(expected.probabilities, abs=1e-4)


def test_the_first_texts_have_evidence(both):
    _, loaded, _ = both
    texts = [text for text, _ in TEXTS]
    predictions = loaded.predict(texts)
    assert [p.evidence is None for p in predictions] == [False] * 3 + [True] * (len(texts) - 3)
    for text, prediction in zip(texts[:3], predictions[:3], strict=True):
        assert all(0 <= start < end <= len(text) for start, end, _ in prediction.evidence)
        words = {text[start:end] for start, end, _ in prediction.evidence}
        assert {*trained.GOOD, *trained.BAD} & {*" ".join(words).split()}


def test_the_temperature_is_chosen_and_among_the_metrics(both):
    _, loaded, _ = both
    texts = [text for text, _ in TEXTS]
    metrics = loaded.further_metrics(RECORDS, loaded.predict(texts))
    assert metrics["temperature"] == loaded.settings["temperature"] != 1
    loaded.settings["temperature"] = 1.0
    uncalibrated = loaded.predict(texts)
    loaded.settings["temperature"] = metrics["temperature"]
    pairs = zip(uncalibrated, RECORDS, strict=True)
    right = np.array([prediction.label == record.gold for prediction, record in pairs])
    confidences = np.array([max(p.probabilities.values()) for p in uncalibrated])
    error = float(calibration.error(calibration.histogram(right, confidences).sum(axis=0)))
    assert metrics["ece_uncalibrated"] == pytest.approx(error, abs=1e-3)


def test_evidence_is_described_if_there_is_any(both):
    _, loaded, _ = both
    text = TEXTS[0][0]
    evidence = loaded.describe(text, loaded.predict([text])[0])["evidence"]
    assert evidence
    assert all(span["text"] == text[span["start"] : span["end"]] for span in evidence)
    unexplained = loaded.predict([text] * 4)[3]
    assert "evidence" not in loaded.describe(text, unexplained)


@given(
    st.lists(st.integers(0, 300), min_size=1, max_size=3),
    st.integers(4, 64),
    st.sampled_from(["start", "ends"]),
)
def test_truncated_texts_fit_and_keep_their_order(lengths, room, keep):
    positions = np.concatenate([np.arange(length) for length in lengths])
    splits = np.concatenate([[0], np.cumsum(lengths)])
    encoded = Encoded(positions, positions, positions, splits)
    with mock.patch.object(shared, "special_tokens", return_value=([], [0])):
        kept = shared.truncate(encoded, None, room + 1, keep)
    for length, (start, stop) in zip(lengths, pairwise(kept.splits), strict=True):
        positions = kept.ids[start:stop]
        assert len(positions) == min(length, room)
        assert (np.diff(positions) > 0).all()
        if length > room:
            assert positions[0] == 0
            assert (positions[-1] == length - 1) == (keep == "ends")


def test_tokens_of_a_word_are_summed():
    text = "unhappy end"
    assert shared.sum_by_word(text, [(0, 2, 0.5), (2, 7, 0.25), (8, 11, 1.0)]) == [
        (0, 7, 0.75),
        (8, 11, 1.0),
    ]


def test_leakage_is_not_read(tmp_path):
    text = "LONDON (Reuters) - They met."
    tokenizers.train("words", 300, [text]).save_pretrained(tmp_path)
    encoded = tokenizers.encode(SavedTokenizer(tmp_path), [text, "They met."])
    kept = shared.without_leakage_tokens(encoded, [text, "They met."], "removed")
    first, second = (kept.ids[kept.splits[k] : kept.splits[k + 1]].tolist() for k in (0, 1))
    assert first == second
    assert shared.without_leakage_tokens(encoded, [text, "They met."], "kept") is encoded
