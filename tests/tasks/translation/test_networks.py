"""All kinds of models: greedy and beam search, padding, scores, saving and loading."""

from operator import attrgetter
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F  # noqa: N812

from tests.tasks.translation.translators import (
    LONGEST,
    SHAPES,
    SOURCES,
    TARGETS,
    random_model,
    tokenizer,
)
from wxb.corpora.text.encoded import IGNORED
from wxb.corpora.text.tokenizers import text_of, token_ids
from wxb.models.decoding import search_targets
from wxb.tasks.translation.models.predictor import special_ids_and_size
from wxb.tasks.translation.models.seq2seq import pad_left
from wxb.tasks.translation.record.bleu import bleu_statistics
from wxb.training.batches import collate

IDS = special_ids_and_size(tokenizer())
PAD, BOS, EOS = IDS["pad"], IDS["bos"], IDS["eos"]
HEADS = {"transformer": "logits", "gpt2": "gpt2.lm_head"}  # of others: output
each_kind = pytest.mark.parametrize("name", SHAPES)
some = st.lists(st.integers(0, len(SOURCES) - 1), min_size=1, max_size=4, unique=True)
seeds = st.integers(0, 99)


def batch(indices, extra=0):
    """Sources and targets with `extra` columns of padding."""
    targets = token_ids(tokenizer(), [TARGETS[index] for index in indices])
    items = [
        {"input_ids": ids[:12], "labels": np.append(target[:8], EOS)}
        for ids, target in zip(
            token_ids(tokenizer(), [SOURCES[index] for index in indices]), targets, strict=True
        )
    ]
    padded = collate(items, PAD)
    fill = {"input_ids": PAD, "attention_mask": 0, "labels": IGNORED}
    return {name: F.pad(values, (0, extra), value=fill[name]) for name, values in padded.items()}


def search(translator, indices, extra=0, **options):
    sample = batch(indices, extra)
    inputs = sample["input_ids"], sample["attention_mask"]
    return search_targets(translator.model, *inputs, max_new_tokens=8, **options)


def sequences(hypotheses):
    """The token ids of each row and hypothesis, up to eos."""
    return [
        [ids[: ids.index(EOS)] if EOS in ids else ids for ids in rows]
        for rows in hypotheses.tokens.tolist()
    ]


@each_kind
@given(some, st.integers(1, 3), st.integers(0, 4), seeds)
@settings(deadline=None, max_examples=8)
def test_a_batch_gives_what_single_sentences_give(name, indices, beams, extra, seed):
    translator = random_model(name, seed=seed)
    together = search(translator, indices, extra, beams=beams)
    for row, index in enumerate(indices):
        alone = search(translator, [index], beams=beams)
        assert sequences(together)[row][0] == sequences(alone)[0][0]
        assert torch.allclose(together.scores[row], alone.scores[0])


@each_kind
@given(some, st.integers(1, 3), st.sampled_from([0.0, 0.6, 1.0]), seeds)
@settings(deadline=None, max_examples=8)
def test_a_score_is_the_teacher_forced_log_probability(name, indices, beams, penalty, seed):
    translator, sample = random_model(name, seed=seed), batch(indices)
    inputs = sample["input_ids"], sample["attention_mask"]
    options = {"max_new_tokens": 8, "beams": beams, "length_penalty": penalty}
    hypotheses = search_targets(translator.model, *inputs, **options)
    for k in range(hypotheses.tokens.shape[1]):
        tokens = hypotheses.tokens[:, k]
        with torch.no_grad():
            hidden = translator.model.hidden(*inputs, tokens)
            logits = attrgetter(HEADS.get(name, "output"))(translator.model)(hidden)
        logs = logits.log_softmax(dim=-1).gather(-1, tokens[..., None])[..., 0]
        for row, ids in enumerate(tokens.tolist()):
            length = ids.index(EOS) + 1 if EOS in ids else len(ids)
            expected = float(logs[row, :length].sum()) / length**penalty
            assert float(hypotheses.scores[row, k]) == pytest.approx(expected)


@each_kind
def test_padding_does_not_change_the_loss(name):
    translator = random_model(name).train()
    few, more = (translator(**batch([0, 1, 2], extra))["loss"] for extra in (0, 5))
    assert few.item() == pytest.approx(more.item())


@each_kind
def test_evaluation_mode_scores_greedy_translations(name):
    translator, sample = random_model(name), batch([0, 1, 2])
    output = translator(**sample)
    longest = min(LONGEST, 2 * sample["labels"].shape[1] + 8)
    inputs = sample["input_ids"], sample["attention_mask"]
    tokens = search_targets(translator.model, *inputs, max_new_tokens=longest).tokens[:, 0]
    predicted = [
        text_of(tokenizer(), ids[: ids.index(EOS)] if EOS in ids else ids)
        for ids in tokens.tolist()
    ]
    references = [
        [text_of(tokenizer(), [i for i in ids if i not in (IGNORED, EOS)])]
        for ids in sample["labels"].tolist()
    ]
    assert output["statistics"].tolist() == bleu_statistics(predicted, references).tolist()


def test_teacher_forcing_decays_with_updates(monkeypatch):
    translator = random_model("attention").train()
    translator.shape = {"teacher_forcing_decay": 10.0}
    forward = Mock(wraps=translator.model.forward)
    monkeypatch.setattr(translator.model, "forward", forward)
    for translator.updates in (0, 20, 100):
        translator(**batch([0]))
    shares = [call.kwargs["teacher_forcing"] for call in forward.call_args_list]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.9
    assert shares[-1] < 0.01


class TestPromptedGPT2:
    @given(st.lists(st.lists(st.booleans(), min_size=5, max_size=5), min_size=1, max_size=4))
    def test_padding_moves_to_the_start(self, drawn):
        mask = torch.tensor(drawn).long()
        ids = torch.arange(5).repeat(len(drawn), 1) + 1
        padded, padded_mask = pad_left(ids, mask)
        for row, is_token in enumerate(drawn):
            tokens = [index + 1 for index, value in enumerate(is_token) if value]
            assert padded[row, 5 - len(tokens) :].tolist() == tokens
            assert padded_mask[row].tolist() == [0] * (5 - len(tokens)) + [1] * len(tokens)

    def test_the_prompt_is_not_part_of_the_loss(self):
        translator, sample = random_model("gpt2"), batch([0, 1])
        targets = sample["labels"].masked_fill(sample["labels"] == IGNORED, PAD)
        ids = torch.cat([sample["input_ids"][:1, :12], torch.tensor([[BOS]]), targets[:1]], dim=1)
        logits = translator.model.gpt2(ids).logits[0].log_softmax(dim=-1)
        count = int((targets[0] != PAD).sum())
        losses = [-float(logits[12 + i, int(targets[0, i])].detach()) for i in range(count)]
        alone = translator.model.loss(
            sample["input_ids"][:1], sample["attention_mask"][:1], targets[:1]
        )
        assert int(sample["attention_mask"][0].sum()) == 12
        assert alone.item() == pytest.approx(np.mean(losses))
