"""The tagger: its loss, padding, word features."""

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel, LlamaConfig, LlamaModel, set_seed

from wxb.corpora.text.encoded import IGNORED
from wxb.tasks.ner.models.tagger import Tagger
from wxb.tasks.ner.params import Head, TaggingModel, WordFeatures

HEAD = Head(projection=12, dropout=0.2)
TAGS = 5
SHAPE = {
    "vocab_size": 40,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 32,
}
IDS = torch.tensor([[1, 7, 9, 3, 0, 0], [1, 30, 31, 32, 33, 3]])
MASK = torch.tensor([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]])
LOGITS = ("tags", "starts", "ends")

WORDS = WordFeatures(rows=20, width=4, window=1, dropout=0.1)
ROWS = torch.arange(IDS.numel() * 12).reshape(*IDS.shape, 12) % 19 + 1  # 3 words of 4 features

each_backbone = pytest.mark.parametrize("kind", ["bert", "llama"])


def tagger(kind, word_features=None):
    set_seed(4)
    backbone = (
        BertModel(BertConfig(**SHAPE), add_pooling_layer=False)
        if kind == "bert"
        else LlamaModel(LlamaConfig(num_key_value_heads=1, **SHAPE))
    )
    shape = TaggingModel(head=HEAD, word_features=word_features)
    return Tagger(backbone, TAGS, shape).eval()


def logits(model, ids=IDS, mask=MASK, words=None):
    with torch.inference_mode():
        output = model(ids, mask, words=words)
    return [output[name] for name in LOGITS]


def targets():
    rng = np.random.default_rng(0)
    tags = torch.from_numpy(rng.integers(0, TAGS, IDS.shape))
    starts, ends = (torch.from_numpy(rng.integers(0, 2, IDS.shape)) for _ in range(2))
    ignored = (MASK == 0) | (IDS == 1) | (IDS == 3)
    columns = (values.masked_fill(ignored, IGNORED) for values in (tags, starts, ends))
    return dict(zip(LOGITS, columns, strict=True))


@each_backbone
def test_loss_equals_a_computation_by_hand(kind):
    model, labels = tagger(kind), targets()
    tags, starts, ends = labels.values()
    with torch.inference_mode():
        loss = model(IDS, MASK, **labels)["loss"]
    tag_logits, *edge_logits = (values.double().numpy() for values in logits(model))
    bio, edges, counted = 0.0, [0.0, 0.0], 0
    for row, column in np.argwhere(tags.numpy() != IGNORED):
        scores = tag_logits[row, column]
        bio += np.log(np.exp(scores).sum()) - scores[tags[row, column]]
        for side, (score, target) in enumerate(zip(edge_logits, (starts, ends), strict=True)):
            p = 1 / (1 + np.exp(-score[row, column]))
            edges[side] -= np.log(p if target[row, column] else 1 - p)
        counted += 1
    assert float(loss) == pytest.approx((bio + 0.5 * np.mean(edges)) / counted, rel=1e-5)


@each_backbone
def test_logits_and_loss_do_not_depend_on_padding(kind):
    model, labels = tagger(kind), targets()
    wide_ids = torch.nn.functional.pad(torch.where(MASK.bool(), IDS, 17), (0, 9), value=17)
    wide_mask = torch.nn.functional.pad(MASK, (0, 9))
    wide_labels = {
        name: torch.nn.functional.pad(v, (0, 9), value=IGNORED) for name, v in labels.items()
    }
    real = MASK.bool()
    for narrow, wide in zip(logits(model), logits(model, wide_ids, wide_mask), strict=True):
        torch.testing.assert_close(wide[:, : IDS.shape[1]][real], narrow[real], atol=1e-5, rtol=0)
    alone = logits(model, IDS[:1, :4], MASK[:1, :4])
    for single, batch in zip(alone, logits(model), strict=True):
        torch.testing.assert_close(batch[:1, :4], single, atol=1e-5, rtol=0)
    with torch.inference_mode():
        narrow_loss = model(IDS, MASK, **labels)["loss"]
        wide_loss = model(wide_ids, wide_mask, **wide_labels)["loss"]
    torch.testing.assert_close(wide_loss, narrow_loss, atol=1e-5, rtol=0)


def test_word_features_change_the_logits_of_their_token():
    model, other = tagger("bert", WORDS), ROWS.clone()
    other[0, 2] = 1 + other[0, 2] % 19
    changed = logits(model, words=ROWS)[0] != logits(model, words=other)[0]
    assert changed.any(dim=-1).nonzero().tolist() == [[0, 2]]
