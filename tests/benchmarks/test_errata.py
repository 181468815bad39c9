"""The published forms have the defects that docs/errata.md describes, and no others."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, set_seed

from tests import tiny
from tests.benchmarks.script import script
from wxb.corpora.records import Record
from wxb.corpora.text.encoded import IGNORED
from wxb.corpora.text.tokenizers import train as train_tokenizer
from wxb.tasks.ner.metrics import counts
from wxb.tasks.ner.models.bio import OUTSIDE
from wxb.tasks.ner.models.tagger import Tagger
from wxb.tasks.ner.params import Head, TaggingModel
from wxb.tasks.ner.record import Span
from wxb.tasks.ner.tagging import TaggingMethod
from wxb.training.backbones.generator import Generator
from wxb.training.batches import collate

TYPES = ["AGE", "NAME"]

scoring, training, errata = map(script, ("errata_scoring", "errata_training", "errata"))


def recognizer(texts, kind="wordpiece"):
    """A predictor with a tokenizer for the texts and a dummy model."""
    settings = {"types": TYPES, "threshold": 0.0, "max_length": 64, "stride": 8}
    settings["word_features"] = None
    return TaggingMethod.PREDICTOR(
        torch.nn.Linear(1, 1), train_tokenizer(kind, 400, texts), **settings
    )


def record(text, *spans):
    return Record(id=text, input=text, gold=tuple(spans), language=None, group="")


# Scoring and decoding of taggers


def test_token_scores_count_a_part_of_a_token_as_right():
    texts = ["Ann met Bob"] * 50
    predictor = recognizer(texts)
    gold, predicted = [[Span(0, 2, "NAME")]], [[Span(0, 3, "NAME")]]
    assert counts(gold, predicted)["correct"] == [0]
    by_token = [scoring.on_tokens(predictor, texts[:1], spans) for spans in (gold, predicted)]
    assert counts(*by_token)["correct"] == [1]


def test_spans_are_extended_by_a_space_before_them():
    spans = [Span(0, 3, "NAME"), Span(4, 5, "AGE"), Span(6, 7, "AGE")]
    assert scoring.with_space("Ann 9,8", spans) == [spans[0], Span(3, 5, "AGE"), spans[2]]


# Prompts and decoding of generators

RECORDS = [
    record("Ann is 9.", Span(0, 3, "NAME"), Span(7, 8, "AGE")),
    record("Yesterday, as we heard, Bob was 12", Span(24, 27, "NAME"), Span(32, 34, "AGE")),
    record("No one of that name is here, nor ever was."),
    record("It was Eve.", Span(7, 10, "NAME")),
]

ids = st.lists(st.integers(1, 9), min_size=1, max_size=6)


@given(st.lists(st.tuples(ids, ids), min_size=1, max_size=7), st.integers(1, 3))
def test_outputs_are_sliced_like_a_padded_batch(rows, size):
    batched = [scoring.Answer(np.array(prompt), np.array(answer), 1.0) for prompt, answer in rows]
    expected = []
    for start in range(0, len(rows), size):
        batch = rows[start : start + size]
        longest = max(len(prompt) for prompt, _ in batch)
        for prompt, answer in batch:
            output = [0] * (longest - len(prompt)) + prompt + answer
            expected.append([i for i in output[len(prompt) :] if i != 0])
    assert [row.tolist() for row in scoring.slice_by_tokens(batched, size)] == expected


def test_perfect_answers_with_separators_are_right_if_escaped():
    pair = scoring.separator_pair([record for record in RECORDS if record.gold])
    assert {tuple(values) for values in pair.correct.values()} == {(2, 2, 1)}
    assert pair.published["correct"].sum() == 2  # the ages


# Training


@pytest.fixture(scope="module")
def tagger(tmp_path_factory):
    folder = tiny.bert(tmp_path_factory.mktemp("bert"), vocab_size=20)
    set_seed(0)
    backbone = tiny.BertModel.from_pretrained(folder, add_pooling_layer=False)
    return Tagger(backbone, 5, TaggingModel(head=Head(projection=8, dropout=0.0))).eval()


def test_padding_changes_the_loss_only_if_it_is_labelled(tagger):
    rows = [np.array(row) for row in ([3, 4, 5], [6, 7, 8, 9, 3])]
    items = [
        {"input_ids": row, "tags": row % 5, "starts": row % 2, "ends": row % 2} for row in rows
    ]
    batches = [training.padded_to(16, fill, items, pad=0) for fill in (IGNORED, OUTSIDE)]
    for batch, fill in zip(batches, (IGNORED, OUTSIDE), strict=True):
        for name in ("tags", "starts", "ends"):
            assert set(batch[name][batch["attention_mask"] == 0].tolist()) == {fill}
    with torch.no_grad():
        plain = tagger(**collate(items, 0))["loss"]
        right, published = (tagger(**batch)["loss"] for batch in batches)
    torch.testing.assert_close(right, plain)
    assert abs(published - plain) > 0.01


def test_loss_over_the_prompt_equals_that_of_the_full_text(tmp_path):
    model = AutoModelForCausalLM.from_pretrained(tiny.llama(tmp_path, vocab_size=20)).eval()
    item = {"input_ids": np.array([1, 5, 6, 7, 2]), "labels": np.array([-100, -100, -100, 7, 2])}
    batch = collate([training.over_the_prompt(item)], 0)
    with torch.no_grad():
        loss = Generator(model)(**batch)["loss"]
        expected = model(batch["input_ids"], labels=batch["input_ids"]).loss
    torch.testing.assert_close(loss, expected)


def test_noise_of_short_rows_shrinks_with_the_padded_length():
    embeddings, mask = torch.zeros(1, 64, 16), torch.zeros(1, 64, dtype=torch.long)
    mask[:, :4] = 1
    torch.manual_seed(0)
    noise = training.noisy_by_padding(embeddings, mask, 5.0)
    assert float(noise.abs().max()) == pytest.approx(5 / (64 * 16) ** 0.5, rel=0.02)
    assert noise[:, 4:].abs().min() > 0
    torch.manual_seed(0)
    by_row = training.add_noise(embeddings, mask, 5.0)
    torch.testing.assert_close(by_row[:, :4], noise[:, :4] * 4)
