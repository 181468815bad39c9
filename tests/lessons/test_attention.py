"""The lesson on attention: the weights are those of the model, and shares sum to 1."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import demo, tiny
from wxb.core.errors import WxbError
from wxb.core.params import check
from wxb.corpora.text.tokenizers import train
from wxb.lessons import attention

SENTENCE = "Ann Lee met Bob in Rome."
KINDS = {"bert": "wordpiece", "llama": "byte-level-bpe"}


@pytest.fixture(scope="module", params=KINDS)
def folder(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    tokenizer = train(KINDS[request.param], 300, [SENTENCE])
    getattr(tiny, request.param)(folder, vocab_size=len(tokenizer))
    tokenizer.save_pretrained(folder)
    return folder


def lesson(folder, **settings):
    content = demo.content()
    content["lessons"]["attention"] |= {"path": str(folder), "sentence": SENTENCE, "layers": 1}
    content["lessons"]["attention"] |= settings
    return attention.run(check(content), "attention")


def test_rows_sum_to_one_and_a_decoder_ignores_later_tokens(folder):
    tokens, weights = attention.attention_weights(folder, SENTENCE)
    assert weights.shape == (2, 4, len(tokens), len(tokens))
    # A softmax in float32 divides by a sum of at most 32 terms: 33 roundings of 2^-24 of a weight.
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=33 * 2**-24)
    is_later = np.triu(np.ones((len(tokens), len(tokens))), 1) == 1
    assert (weights[..., is_later] == 0).all() == ("llama" in str(folder))


def test_the_last_layers_are_shown_head_by_head(folder):
    result = lesson(folder)
    titles = [section.title for section in result.sections]
    assert "Layer 2" in titles
    assert "Layer 1" not in titles
    charts = result.sections[1].blocks[1].charts
    assert [*charts] == ["Head 1", "Head 2", "Head 3", "Head 4"]
    assert "of layer 2" in result.answer
    tokens, _ = attention.attention_weights(folder, SENTENCE)
    for figure in charts.values():
        assert len(figure.layout.xaxis.ticktext) == len(figure.layout.yaxis.ticktext) == len(tokens)


def test_metrics_are_the_maxima_of_the_table(folder):
    result = lesson(folder, layers=2)
    table = result.sections[-1].blocks[-1]
    assert [row[0] for row in table.rows] == [
        f"layer {layer}, head {head}" for layer in (1, 2) for head in (1, 2, 3, 4)
    ]
    columns = zip(table.header, *table.rows, strict=True)
    maxima = {name: max(cell.value for cell in cells) for name, *cells in [*columns][1:]}
    assert [*result.metrics] == ["before_max", "itself_max", "after_max", "first_max"]
    for key, value in result.metrics.items():
        assert value == round(maxima[key.removesuffix("_max")], 6)


@given(st.integers(1, 7), st.integers(0, 9))
def test_shares_sum_to_one(length, seed):
    weights = np.random.default_rng(seed).random((length, length))
    weights /= weights.sum(axis=1, keepdims=True)
    shares = attention.attention_by_target(weights)
    assert sum(shares.values()) == pytest.approx(1)
    assert min(shares.values()) >= 0


def test_shares_of_heads_that_attend_to_one_kind_of_token():
    assert attention.attention_by_target(np.eye(5))["itself"] == 1
    previous = np.eye(5, k=-1) + np.eye(5)[:, :1] @ np.eye(5)[:1]
    assert attention.attention_by_target(previous)["before"] == 0.8
    assert attention.attention_by_target(np.eye(9)[[0] * 9])["first"] == pytest.approx(7 / 9)


def test_invalid_models_and_sentences_are_errors(folder, tmp_path):
    with pytest.raises(WxbError, match="found no model"):
        attention.attention_weights(tmp_path, SENTENCE)
    with pytest.raises(WxbError, match="reads at most 32"):
        attention.attention_weights(folder, SENTENCE * 20)
