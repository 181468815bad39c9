"""LSTM encoder and decoder: gradients, attention, teacher forcing and training."""

import math
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.benchmarks.script import script
from wxb.models.seq2seq import AdditiveAttention, Config, Seq2Seq, teacher_forcing
from wxb.models.transformer import Config as TransformerConfig
from wxb.models.transformer import Translator

errata = script("errata_models")  # it has a small model that learns to reverse texts
reversals, SIZE = errata.reversals, errata.VOCABULARY
seeds = st.integers(0, 999)


def build(attention=True, seed=0):
    torch.manual_seed(seed)
    shape = {"embedding_size": 6, "hidden_size": 5, "dropout": 0.0}
    return Seq2Seq(Config(SIZE, SIZE, attention=attention, **shape)).double().eval()


def transformer(seed=0):
    torch.manual_seed(seed)
    shape = {"width": 8, "heads": 2, "layers": 2, "feed_forward": 12, "dropout": 0.0}
    return Translator(TransformerConfig(SIZE, SIZE, **shape)).double().eval()


MODELS = {"plain": partial(build, False), "attention": partial(build, True)}
MODELS["transformer"] = transformer


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_every_weight_has_a_gradient_even_with_a_source_of_padding(make):
    model = make()
    ids, mask, labels = reversals(3)
    mask[1] = False
    model.loss(ids, mask, labels).backward()
    assert all(p.grad.isfinite().all() and p.grad.any() for p in model.parameters())


@given(st.integers(1, 5), st.lists(st.booleans(), min_size=1, max_size=6), seeds)
@settings(deadline=None, max_examples=30)
def test_additive_attention_equals_a_computation_by_hand(hidden, is_token, seed):
    torch.manual_seed(seed)
    model = AdditiveAttention(hidden).double()
    query = torch.randn(1, hidden, dtype=torch.float64)
    source = torch.randn(1, len(is_token), 2 * hidden, dtype=torch.float64)
    weights = model(query, model.key(source), torch.tensor([is_token]))[0]
    w, b, u, v = model.query.weight, model.query.bias, model.key.weight, model.score.weight[0]
    scores = (w @ query[0] + b + source[0] @ u.T).tanh() @ v  # (S,)
    powers = scores.exp() * torch.tensor(is_token)
    torch.testing.assert_close(weights, powers / max(powers.sum(), 1e-300))


@pytest.mark.parametrize("attention", [False, True], ids=["plain", "attention"])
def test_the_decoder_reads_the_source_at_every_step(attention):
    """Not in its first state only, from which a long target loses it."""
    model = build(attention)
    ids, mask, labels = reversals(2)
    state, other = model.encode(ids, mask), model.encode(ids.flip(0), mask.flip(0))
    other = other._replace(hidden=state.hidden, memory=state.memory)
    for tokens in labels.unbind(dim=1):
        (logits, state), (others, other) = (
            model.step(tokens[:, None], each) for each in (state, other)
        )
        assert not torch.isclose(logits, others).all(dim=-1).any()
        other = other._replace(hidden=state.hidden, memory=state.memory)


def test_teacher_forcing_is_the_share_of_labels_read():
    model = build()
    ids, mask, labels = reversals(400)

    def logits(probability, seed=0):
        generator = torch.Generator().manual_seed(seed)
        return model(ids, mask, labels, teacher_forcing=probability, generator=generator)["logits"]

    forced, free, mixed = logits(1.0), logits(0.0), logits(0.3)
    wrong = forced[:, 0].argmax(-1) != labels[:, 0]  # rows where label and prediction differ
    assert wrong.sum() > 200
    like_forced = torch.isclose(mixed[wrong, 1], forced[wrong, 1]).all(-1)
    assert torch.equal(like_forced, ~(mixed[wrong, 1] == free[wrong, 1]).all(-1))
    five_deviations = 5 * (0.3 * 0.7 / int(wrong.sum())) ** 0.5
    assert float(like_forced.double().mean()) == pytest.approx(0.3, abs=five_deviations)
    assert torch.equal(logits(0.3), mixed)
    assert not torch.equal(logits(0.3, seed=1), mixed)


@given(st.integers(1, 10_000), st.integers(1, 10**9))
@settings(deadline=None)
def test_teacher_forcing_falls_from_one_to_zero(decay, step):
    assert teacher_forcing(0, decay=decay) == pytest.approx(decay / (decay + 1))
    assert 0 <= teacher_forcing(step, decay=decay) <= teacher_forcing(step - 1, decay=decay)
    half = decay * math.log(decay)
    assert teacher_forcing(half, decay=decay) == pytest.approx(0.5)


@pytest.mark.parametrize("make", [build, transformer])
def test_attention_weights_ignore_padding_and_later_tokens(make):
    model = make()
    ids, mask, labels = reversals(4)
    weights = model.attention_weights(ids, mask, labels)  # (B, T, S)
    assert weights.shape == (*labels.shape, ids.shape[1])
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(labels.shape, dtype=torch.float64))
    assert not weights[~mask.bool()[:, None].expand_as(weights)].any()
    later = labels.clone()
    later[:, -1] = 3
    changed = model.attention_weights(ids, mask, later)
    torch.testing.assert_close(changed[:, :-1], weights[:, :-1])


def test_attention_weights_are_those_of_each_step():
    model = build()
    ids, mask, labels = reversals(4)
    weights = model.attention_weights(ids, mask, labels)
    state = model.encode(ids, mask)
    first = model.attention(state.hidden, state.keys, state.source_mask)
    assert weights[:, 0].equal(first)
    assert not build(attention=False).attention_weights(ids, mask, labels).any()
