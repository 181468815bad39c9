"""The lesson on attention: the maps are those of the model, and shares of attention add up."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests import tiny
from wxb.core.errors import WxbError
from wxb.core.params import check, read_yaml
from wxb.corpora.text.tokenizers import load, train
from wxb.lessons import attention
from wxb.models.attention import attention_weights
from wxb.training.backbones.weights import load_backbone

SENTENCE = "Ann Lee met Bob in Rome."
ROOT = Path(__file__).parents[2]
KINDS = {"bert": "wordpiece", "llama": "byte-level-bpe"}


@pytest.fixture(scope="module", params=KINDS)
def folder(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    tokenizer = train(KINDS[request.param], 300, [SENTENCE])
    getattr(tiny, request.param)(folder, vocab_size=len(tokenizer))
    tokenizer.save_pretrained(folder)
    return folder


def lesson(folder, **settings):
    content = read_yaml(ROOT / "params.yaml")
    content["lessons"]["attention"] |= {
        "path": str(folder),
        "sentence": SENTENCE,
        "layers": 1,
        **settings,
    }
    return attention.run(check(content), "attention")


def test_every_row_of_a_map_sums_to_one_and_a_decoder_sees_nothing_ahead(folder):
    tokens, weights = attention.attended(folder, SENTENCE)
    assert weights.shape == (2, 4, len(tokens), len(tokens))
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-6)
    ahead = np.triu(np.ones((len(tokens), len(tokens))), 1) == 1
    assert (weights[..., ahead] == 0).all() == ("llama" in str(folder))


def test_the_maps_are_those_of_our_own_architecture(tmp_path):
    tokenizer = train("wordpiece", 300, [SENTENCE])
    tiny.bert(tmp_path, vocab_size=len(tokenizer))
    tokenizer.save_pretrained(tmp_path)
    ours = load_backbone(tmp_path, native=True).eval().backbone
    ids = load(tmp_path)(SENTENCE, return_tensors="pt")["input_ids"]
    layer = ours.encoder.layer[0].attention.self
    with torch.no_grad():
        hidden = ours.embeddings(ours.embeddings.word_embeddings(ids), None, None)
        split = [
            project(hidden).unflatten(-1, (4, -1)).transpose(1, 2)
            for project in (layer.query, layer.key)
        ]
        expected = attention_weights(*split)[0].numpy()
    _, weights = attention.attended(tmp_path, SENTENCE)
    np.testing.assert_allclose(weights[0], expected, atol=1e-6)


def test_the_last_layers_are_shown_head_by_head(folder):
    found = lesson(folder)
    titles = [part.title for part in found.parts]
    assert "Layer 2" in titles
    assert "Layer 1" not in titles
    assert [*found.parts[2].figures] == ["Head 1", "Head 2", "Head 3", "Head 4"]
    assert "of layer 2" in found.answer
    tokens, _ = attention.attended(folder, SENTENCE)
    for figure in found.parts[2].figures.values():
        assert len(figure.layout.xaxis.ticktext) == len(figure.layout.yaxis.ticktext) == len(tokens)


def test_metrics_are_the_few_that_one_compares_and_the_table_has_the_rest(folder):
    found = lesson(folder, layers=2)
    habits = found.parts[-1].tables[""]
    assert [row[0] for row in habits.rows] == [
        f"layer {layer}, head {head}" for layer in (1, 2) for head in (1, 2, 3, 4)
    ]
    _, *columns = zip(*habits.rows, strict=True)
    most = dict(zip(habits.header[1:], map(max, columns), strict=True))
    assert [*found.metrics] == ["before_max", "itself_max", "after_max", "first_max"]
    for key, value in found.metrics.items():
        assert value == round(most[key.removesuffix("_max")], 6)


@given(st.integers(1, 7), st.integers(0, 9))
def test_shares_add_up(length, seed):
    weights = np.random.default_rng(seed).random((length, length))
    weights /= weights.sum(axis=1, keepdims=True)
    shares = attention.habits(weights)
    assert sum(shares.values()) == pytest.approx(1)
    assert min(shares.values()) >= 0


def test_an_even_head_has_no_habit_and_a_settled_one_has():
    assert attention.habits(np.eye(5))["itself"] == 1
    assert attention.habits(np.eye(5, k=-1) + np.eye(5)[:, :1] @ np.eye(5)[:1])["before"] == 0.8
    assert attention.habits(np.eye(9)[[0] * 9])["first"] == pytest.approx(7 / 9)


def test_what_cannot_be_shown_is_told(folder, tmp_path):
    with pytest.raises(WxbError, match="an adapter has no attention"):
        attention.attended(tmp_path, SENTENCE)
    with pytest.raises(WxbError, match="reads 32: take a shorter one"):
        attention.attended(folder, SENTENCE * 20)
