from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.tasks.classification import trained
from tests.tasks.classification.trained import RECORDS, TEXTS
from wxb.corpora.text.encoded import Encoded
from wxb.project.trained import load
from wxb.tasks import methods
from wxb.tasks.classification import bag

METHODS = {
    "cls": (trained.encoder("cls"), "wordpiece"),
    "mean": (trained.encoder("mean"), "wordpiece"),
    "prompt": (trained.prompt(), "byte-level-bpe"),
    "recurrent": (trained.scratch("recurrent"), "words"),
    "bag": (trained.scratch("bag"), "words"),
    "tfidf": (trained.tfidf(), "words"),
}


@pytest.fixture(scope="module", params=METHODS)
def both(request, tmp_path_factory):
    """A predictor after training, the same after saving and loading, and its folder."""
    experiment, kind = METHODS[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    return *trained.train(experiment, folder, kind), folder / "model"


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
    row = loaded.output_fields("", prediction)
    assert next(iter(row["probabilities"])) == row["label"] == prediction.label == "good"
    assert loaded.as_text("The film today was lovely.", prediction).startswith("good ")
    assert loaded.predict([]) == []


def test_a_batch_gives_the_predictions_of_single_texts(both):
    _, loaded, _ = both
    texts = ["The film today was lovely.", "dull", "", "The play today was weak. " * 20, "xyzzy"]
    together = loaded.predict(texts)
    for text, expected in zip(texts, together, strict=True):
        (alone,) = loaded.predict([text])
        assert alone.probabilities == pytest.approx(expected.probabilities, abs=1e-4)


def test_the_temperature_is_chosen_and_among_the_metrics(both):
    _, loaded, _ = both
    metrics = loaded.model_metrics(RECORDS, loaded.predict([text for text, _ in TEXTS]))
    assert metrics == {"temperature": loaded.settings["temperature"]}
    assert loaded.settings["temperature"] != 1


@given(
    st.lists(st.integers(0, 300), min_size=1, max_size=3),
    st.integers(4, 64),
    st.sampled_from(["start", "ends"]),
)
def test_truncated_texts_fit_and_keep_their_order(lengths, room, keep):
    positions = np.concatenate([np.arange(length) for length in lengths])
    splits = np.concatenate([[0], np.cumsum(lengths)])
    encoded = Encoded(positions, positions, positions, splits)
    fixed = {"special_tokens": lambda _: ([], [0]), "max_text_tokens": lambda *_: room}
    with mock.patch.multiple(methods, **fixed):
        items = methods.inputs(encoded, None, room + 1, keep)
    for length, item in zip(lengths, items, strict=True):
        *positions, last = item["input_ids"]
        assert last == 0
        assert len(positions) == min(length, room)
        assert (np.diff(positions) > 0).all()
        if length > room:
            assert positions[0] == 0
            assert (positions[-1] == length - 1) == (keep == "ends")


def test_the_shape_of_a_network_is_that_of_params(tmp_path):
    experiment = trained.scratch("recurrent")
    _, predictor = trained.train(experiment, tmp_path, "words")
    assert predictor.settings["shape"] == experiment.model.model_dump()
    assert predictor.model.embedding.weight.shape == (len(predictor.tokenizer), 16)


def test_a_bag_counts_words_and_pairs_but_no_padding():
    network = bag.Bag(5, 2, embedding_size=3, pairs=7, dropout=0.0)
    ids, mask = torch.tensor([[2, 4, 0], [3, 2, 4]]), torch.tensor([[1, 1, 0], [1, 1, 1]])
    rows = network.embeddings.weight
    pair = 5 + (2 * 1_000_003 + 4) % 7
    expected = network.head((rows[2] + rows[4] + rows[pair]) / 3)
    assert torch.allclose(network(ids, mask)["logits"][0], expected, atol=1e-6)
