"""Greedy and beam search, compared with exhaustive search, transformers and lists."""

from itertools import product
from types import SimpleNamespace
from typing import NamedTuple

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.models.architectures import GPT2
from tests.models.equal import twin
from wxb.models.decoding import (
    MIN_SHARED,
    DecoderState,
    beam_search,
    complete,
    decoder_step,
    greedy_search,
)

PAD, EOS, WORDS = 0, 1, 4
VOCABULARY = 7  # of the sums below
STOPS = {"eos": [EOS], "pad": PAD}
seeds = st.integers(0, 10_000)


class History(NamedTuple):
    """The generated tokens (N, T), and the index of the random model of each row (N,)."""

    tokens: Tensor
    model: Tensor

    def reorder(self, rows):
        return History(self.tokens[rows], self.model[rows])


class Chain:
    """A model with random logits for every history of tokens, different for each row."""

    def __init__(self, seed, spread=2.0):
        self.seed, self.spread = seed, spread

    def logits(self, model, history):
        generator = torch.Generator().manual_seed(hash((self.seed, model, *history)) % 2**31)
        logits = torch.randn(WORDS, generator=generator, dtype=torch.float64) * self.spread
        logits[PAD] = -torch.inf
        return logits

    def __call__(self, tokens, state):
        tokens = torch.cat([state.tokens, tokens], dim=1)
        pairs = zip(state.model.tolist(), tokens.tolist(), strict=True)
        logits = [self.logits(model, history) for model, history in pairs]
        return torch.stack(logits), History(tokens, state.model)

    def start(self, rows):
        return History(torch.empty(rows, 0, dtype=torch.long), torch.arange(rows))

    def score(self, model, tokens, length_penalty):
        history, total = (2,), 0.0
        for token in tokens:
            total += float(self.logits(model, history).log_softmax(-1)[token])
            history = (*history, token)
        return total / len(tokens) ** length_penalty


def without_padding(tokens):
    return [token for token in tokens if token != PAD]


def beam(chain, rows, **options):
    """Beam search after the token 2 in every row."""
    options = {**STOPS, **options}
    return beam_search(chain, chain.start(rows), torch.full((rows, 1), 2), **options)


def greedy(chain, rows, longest, **options):
    """Greedy search after the token 2 in every row."""
    options = {**STOPS, "max_new_tokens": longest, **options}
    return greedy_search(chain, chain.start(rows), torch.full((rows, 1), 2), **options)


@given(seeds, st.integers(1, 4), st.integers(1, 3), st.sampled_from([0.0, 0.6, 1.0, 2.0]))
@settings(deadline=None, max_examples=25)
def test_a_wide_beam_ranks_all_sequences(seed, longest, rows, penalty):
    chain = Chain(seed)
    texts = [[*t, EOS] for n in range(longest) for t in product(range(2, WORDS), repeat=n)]
    texts += [list(t) for t in product(range(2, WORDS), repeat=longest)]  # truncated
    limits = {"beams": len(texts), "max_new_tokens": longest, "length_penalty": penalty}
    result = beam(chain, rows, **limits)
    for row in range(rows):
        scores = {tuple(t): chain.score(row, t, penalty) for t in texts}
        ranked = sorted(texts, key=lambda t: -scores[tuple(t)])
        assert [without_padding(t) for t in result.tokens[row].tolist()] == ranked
        assert result.scores[row].tolist() == pytest.approx([scores[tuple(t)] for t in ranked])


def beam_search_in_lists(chain, row, *, beams, longest):
    """Beam search of one row, where each finished sequence takes one beam."""
    live, finished = [((), 0.0)], []
    for _ in range(longest):
        longer = [
            ((*text, token), score + float(log_probability))
            for text, score in live
            for token, log_probability in enumerate(chain.logits(row, (2, *text)).log_softmax(-1))
            if token != PAD
        ]
        best = sorted(longer, key=lambda pair: -pair[1])[: beams - len(finished)]
        finished += [pair for pair in best if pair[0][-1] == EOS]
        live = [pair for pair in best if pair[0][-1] != EOS]
    return sorted(finished + live, key=lambda pair: -pair[1] / len(pair[0]))


@given(seeds, st.integers(1, 6), st.integers(1, 9), st.integers(1, 3))
@settings(deadline=None, max_examples=30)
def test_beam_search_equals_a_search_in_lists(seed, longest, beams, rows):
    chain = Chain(seed)
    result = beam(chain, rows, beams=beams, max_new_tokens=longest)
    for row in range(rows):
        expected = beam_search_in_lists(chain, row, beams=beams, longest=longest)
        texts = result.tokens[row, : len(expected)].tolist()
        assert [tuple(without_padding(text)) for text in texts] == [text for text, _ in expected]
        assert not result.scores[row, len(expected) :].isfinite().any()


@given(seeds, st.integers(0, 12), st.integers(1, 4))
@settings(deadline=None, max_examples=40)
def test_greedy_search_takes_the_best_tokens_as_one_beam_does(seed, longest, rows):
    chain = Chain(seed)
    result = greedy(chain, rows, longest)
    for row, (tokens, logs) in enumerate(zip(*result, strict=True)):
        for index, (token, log) in enumerate(zip(tokens.tolist(), logs.tolist(), strict=True)):
            history = (2, *tokens[:index].tolist())
            if EOS in history:
                assert (token, log) == (PAD, 0)
            else:
                expected = chain.logits(row, history).log_softmax(-1)
                assert token == int(expected.argmax())
                assert log == pytest.approx(float(expected.max()))
    if longest:
        one = beam(chain, rows, beams=1, max_new_tokens=longest)
        assert one.tokens[:, 0].equal(result.tokens)
        lengths = (result.tokens != PAD).sum(dim=1)
        torch.testing.assert_close(one.scores[:, 0], result.log_probabilities.sum(dim=1) / lengths)


def test_a_cache_that_cannot_select_rows_is_not_used():
    logits, ids = torch.randn(9, 9, generator=torch.Generator().manual_seed(3)), torch.arange(9)

    def tokens(**cache):
        def forward(input_ids, **_):
            return SimpleNamespace(logits=logits[input_ids], **cache)

        stop = {"max_new_tokens": 9, "eos_token_id": [1, 2, 3]}
        return complete(forward, ids[:, None], **stop).tokens

    assert tokens(cache_params=object()).equal(expected := tokens())
    assert 0 < int((expected[:, 0] <= 3).sum()) < len(ids)  # some rows end before others


def test_a_row_ends_with_any_of_several_tokens():
    chain, ends = Chain(1, spread=0.3), [EOS, 3]
    several = beam(chain, 4, beams=3, max_new_tokens=30, eos=ends).tokens.flatten(0, 1)
    for tokens in (several, greedy(chain, 4, 30, eos=ends).tokens):
        texts = [without_padding(text) for text in tokens.tolist()]
        assert {text[-1] for text in texts} == {*ends}
        assert all({*ends}.isdisjoint(text[:-1]) for text in texts)


def test_probabilities_are_not_rounded_to_half_precision():
    class Half(Chain):
        def __call__(self, tokens, state):
            logits, state = super().__call__(tokens, state)
            return logits.bfloat16(), state

    logs = greedy(Half(0), 3, 4).log_probabilities
    assert logs.dtype == torch.float32
    assert not logs.equal(logs.bfloat16().float())


# Decoders after a prompt


class Sums:
    """A decoder that predicts the sum of all tokens modulo 7, with or without a cache."""

    def __init__(self, *, use_cache):
        self.use_cache = use_cache
        self.calls = []

    def __call__(self, input_ids, attention_mask, position_ids, past_key_values):
        self.calls.append((input_ids.shape, attention_mask.shape, position_ids.tolist()))
        is_token = attention_mask[:, -input_ids.shape[1] :]
        cached = past_key_values[0][0][:, 0, 0, 0] if past_key_values else 0
        total = (input_ids * is_token).sum(dim=1) + cached
        logits = torch.nn.functional.one_hot(total % VOCABULARY, VOCABULARY).float()
        cache = total[:, None, None, None]
        return SimpleNamespace(
            logits=logits[:, None], past_key_values=((cache, cache),) if self.use_cache else None
        )


def test_cached_tokens_are_not_read_again():
    ids, mask = torch.tensor([[1, 2, 3], [0, 4, 4]]), torch.tensor([[1, 1, 1], [0, 1, 1]])
    cached, plain = Sums(use_cache=True), Sums(use_cache=False)
    outputs = [complete(forward, ids, mask, max_new_tokens=3) for forward in (cached, plain)]
    assert outputs[0].tokens.equal(outputs[1].tokens)
    assert cached.calls == [
        ((2, 3), (2, 3), [[0, 1, 2], [0, 0, 1]]),
        ((2, 1), (2, 4), [[3], [2]]),
        ((2, 1), (2, 5), [[4], [3]]),
    ]
    assert [call[0] for call in plain.calls] == [(2, 3), (2, 4), (2, 5)]
    assert plain.calls[2][2] == [[0, 1, 2, 3, 4], [0, 0, 1, 2, 3]]


@pytest.mark.parametrize("use_cache", [True, False])
def test_a_common_start_is_read_once(use_cache):
    start = torch.full((2, MIN_SHARED), 3)
    ids = torch.cat([start, torch.tensor([[1, 2, 3], [1, 4, 0]])], dim=1)
    ids[1], mask = ids[1].roll(1), torch.ones_like(ids)
    mask[1, 0] = 0
    forward = Sums(use_cache=use_cache)
    shared = complete(forward, ids, mask, max_new_tokens=3, share_start=True)
    assert shared.tokens.equal(complete(Sums(use_cache=True), ids, mask, max_new_tokens=3).tokens)
    (rows, width), (_, second), *_ = [shape for shape, *_ in forward.calls]
    assert (rows, width) == (1, MIN_SHARED + 1)
    assert second == (2 if use_cache else width + 2)


@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 6), st.booleans(), seeds)
@settings(deadline=None, max_examples=20)
def test_beam_search_of_a_decoder_equals_transformers(rows, beams, longest, use_cache, seed):
    torch.manual_seed(seed)
    theirs = transformers.GPT2LMHeadModel(GPT2.config()).eval()
    ours, *_ = twin(theirs)
    ids, padding = torch.randint(30, (rows, 8)), torch.randint(8, (rows, 1))
    mask = (torch.arange(8) >= padding).long()
    same = transformers.GenerationConfig(
        do_sample=False, num_beams=beams, max_new_tokens=longest, use_cache=use_cache
    )
    expected = theirs.generate(input_ids=ids, attention_mask=mask, generation_config=same)
    result = beam_search(
        decoder_step(lambda **inputs: ours(**inputs, use_cache=use_cache)),
        DecoderState(mask, ids[:, :0]),
        ids,
        beams=beams,
        eos=[],
        pad=0,
        max_new_tokens=longest,
    )
    assert result.tokens[:, 0].equal(expected[:, 8:])
