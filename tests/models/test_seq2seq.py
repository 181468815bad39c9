"""Encoder and decoder: no attention to padding, labels read as often as said, and it learns."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F  # noqa: N812

from tests.benchmarks.script import script
from wxb.models import decoding
from wxb.models.seq2seq import AdditiveAttention, Config, Seq2Seq, teacher_forcing

errata = script("errata_models")  # whose small model learns to reverse texts
reversals, SIZE = errata.reversals, errata.VOCABULARY
seeds = st.integers(0, 999)
each_kind = pytest.mark.parametrize("attention", [False, True], ids=["plain", "attention"])


def made(attention=True, seed=0, **changes):
    torch.manual_seed(seed)
    shape = {"embedding_size": 6, "hidden_size": 5, "dropout": 0.0, **changes}
    return Seq2Seq(Config(SIZE, SIZE, attention=attention, **shape)).double().eval()


@given(st.integers(1, 5), st.lists(st.booleans(), min_size=1, max_size=6), seeds)
@settings(deadline=None, max_examples=30)
def test_additive_attention_equals_a_computation_by_hand(hidden, seen, seed):
    torch.manual_seed(seed)
    model = AdditiveAttention(hidden).double()
    query = torch.randn(1, hidden, dtype=torch.float64)
    source = torch.randn(1, len(seen), 2 * hidden, dtype=torch.float64)
    weights = model(query, model.key(source), torch.tensor([seen]))[0].tolist()
    w, b, u, v = (
        p.tolist()
        for p in (model.query.weight, model.query.bias, model.key.weight, model.score.weight[0])
    )

    def dot(left, right):
        return sum(a * b for a, b in zip(left, right, strict=True))

    def score(token):
        terms = zip(w, b, u, strict=True)
        return dot(
            v, [math.tanh(dot(wi, query[0].tolist()) + bi + dot(ui, token)) for wi, bi, ui in terms]
        )

    powers = [math.exp(score(t)) * s for t, s in zip(source[0].tolist(), seen, strict=True)]
    assert weights == pytest.approx([p / (sum(powers) or 1) for p in powers])


@each_kind
@given(st.integers(1, 4), st.integers(1, 6), st.integers(1, 3), seeds)
@settings(deadline=None, max_examples=20)
def test_padding_changes_neither_loss_nor_what_is_generated(attention, rows, extra, beams, seed):
    model = made(attention, seed)
    ids, mask, labels = reversals(rows)
    wide = F.pad(ids, (0, extra), value=7), F.pad(mask, (0, extra))
    narrow_loss = model(ids, mask, labels)["loss"]
    wide_loss = model(*wide, F.pad(labels, (0, extra)))["loss"]
    torch.testing.assert_close(wide_loss, narrow_loss)
    narrow_tokens, wide_tokens = (
        decoding.generate(model, *source, beams=beams, max_new_tokens=6)
        for source in ((ids, mask), wide)
    )
    assert torch.equal(wide_tokens, narrow_tokens)


@each_kind
@given(st.integers(1, 3), st.integers(1, 4), seeds)
@settings(deadline=None, max_examples=10)
def test_a_beam_finds_the_score_of_forced_reading(attention, rows, beams, seed):
    model = made(attention, seed)
    ids, mask, _ = reversals(rows)
    found = decoding.beam(
        model.step,
        model.encode(ids, mask),
        torch.full((rows, 1), 1),
        beams=beams,
        eos=[2],
        pad=8,  # which the model may write, so that padding is told from it by the end alone
        max_new_tokens=5,
    )
    for k in range(beams):
        logits = model(ids, mask, found.tokens[:, k])["logits"].detach().log_softmax(dim=-1)
        for row, tokens in enumerate(found.tokens[:, k].tolist()):
            end = tokens.index(2) + 1 if 2 in tokens else len(tokens)
            score = sum(float(logits[row, time, token]) for time, token in enumerate(tokens[:end]))
            assert float(found.scores[row, k]) == pytest.approx(score / end)


@each_kind
def test_every_weight_learns_and_a_source_of_padding_alone_gives_no_nan(attention):
    model = made(attention)
    ids, mask, labels = reversals(3)
    mask[1] = False
    model(ids, mask, labels)["loss"].backward()
    assert all(p.grad.isfinite().all() and p.grad.any() for p in model.parameters())


def test_the_label_is_read_as_often_as_said():
    model = made()
    ids, mask, labels = reversals(400)

    def logits(probability, seed=0):
        generator = torch.Generator().manual_seed(seed)
        return model(ids, mask, labels, teacher_forcing=probability, generator=generator)["logits"]

    forced, free, mixed = logits(1.0), logits(0.0), logits(0.3)
    wrong = forced[:, 0].argmax(-1) != labels[:, 0]  # rows in which label and own token differ
    assert wrong.sum() > 200
    like_forced = torch.isclose(mixed[wrong, 1], forced[wrong, 1]).all(-1)
    assert torch.equal(like_forced, ~(mixed[wrong, 1] == free[wrong, 1]).all(-1))
    assert float(like_forced.double().mean()) == pytest.approx(0.3, abs=0.08)
    assert torch.equal(logits(0.3), mixed)
    assert not torch.equal(logits(0.3, seed=1), mixed)


def test_coins_leave_the_global_generator_alone():
    model, batch = made(), reversals(2)
    torch.manual_seed(3)
    model(*batch, teacher_forcing=0.5, generator=torch.Generator().manual_seed(0))
    after = torch.rand(1)
    torch.manual_seed(3)
    assert torch.equal(after, torch.rand(1))


def test_unforced_reading_gives_the_logits_of_greedy_search():
    model = made()
    ids, mask, labels = reversals(4)
    written = model(ids, mask, labels, teacher_forcing=0.0)["logits"].argmax(dim=-1)
    found = decoding.generate(model, ids, mask, max_new_tokens=labels.shape[1])
    for ours, greedy in zip(written.tolist(), found.tolist(), strict=True):
        end = greedy.index(2) + 1 if 2 in greedy else len(greedy)
        assert ours[:end] == greedy[:end]


@given(st.integers(1, 10_000), st.integers(1, 10**9))
@settings(deadline=None)
def test_teacher_forcing_falls_from_one_to_zero(decay, step):
    assert teacher_forcing(0, decay=decay) == pytest.approx(decay / (decay + 1))
    assert 0 <= teacher_forcing(step, decay=decay) <= teacher_forcing(step - 1, decay=decay)
    half = decay * math.log(decay)
    assert teacher_forcing(half, decay=decay) == pytest.approx(0.5)


def test_it_learns_to_reverse_better_with_attention_whatever_the_padding():
    model, plain = errata.reverser(), errata.reverser(attention=False)
    ids, mask, labels = reversals(300, generator=torch.Generator().manual_seed(9))
    right = errata.reversed_right(model, ids, mask, labels)
    assert right > 270
    assert errata.reversed_right(model, ids, mask, labels, beams=3) >= right - 6
    assert errata.reversed_right(plain, ids, mask, labels) <= right
    wide = F.pad(ids, (0, 50)), F.pad(mask, (0, 50))
    assert errata.reversed_right(model, *wide, labels) == right


@each_kind
@given(st.integers(1, 4), st.integers(1, 3), st.sampled_from([0.0, 1.0]), seeds)
@settings(deadline=None, max_examples=15)
def test_what_is_sought_has_the_score_of_its_labels(attention, rows, beams, penalty, seed):
    model = made(attention, seed)
    ids, mask, _ = reversals(rows)
    found = decoding.search(model, ids, mask, max_new_tokens=5, beams=beams, length_penalty=penalty)
    assert decoding.generate(model, ids, mask, max_new_tokens=5, beams=beams).shape[0] == rows
    for k in range(found.tokens.shape[1]):
        tokens = found.tokens[:, k]
        logs = (
            model(ids, mask, tokens)["logits"]
            .detach()
            .log_softmax(-1)
            .gather(-1, tokens[..., None])
        )
        for row, text in enumerate(tokens.tolist()):
            length = text.index(2) + 1 if 2 in text else len(text)
            score = float(logs[row, :length].sum()) / length**penalty
            assert float(found.scores[row, k]) == pytest.approx(score)


@each_kind
def test_the_loss_without_padding_is_the_loss(attention):
    model = made(attention)
    ids, mask, labels = reversals(5)
    assert model.loss(ids, mask, labels).item() == pytest.approx(
        model(ids, mask, labels)["loss"].item()
    )


def test_weights_are_those_that_each_step_looked_with():
    model = made()
    ids, mask, labels = reversals(4)
    weights = model.attention_weights(ids, mask, labels)  # (B, T, S)
    assert weights.shape == (*labels.shape, ids.shape[1])
    assert torch.allclose(weights.sum(dim=-1), torch.ones(labels.shape, dtype=torch.float64))
    assert not weights[~mask.bool()[:, None].expand_as(weights)].any()
    state = model.encode(ids, mask)
    first = model.attention(state.hidden, state.keys, state.seen)
    assert weights[:, 0].equal(first)
    assert not made(attention=False).attention_weights(ids, mask, labels).any()
