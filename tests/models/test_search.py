"""Greedy and beam search beside all sequences that there are, of a small random model."""

from itertools import product
from typing import NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from wxb.models.search import beam, greedy

PAD, EOS, WORDS = 0, 1, 4
STOPS = {"eos": EOS, "pad": PAD}
seeds = st.integers(0, 10_000)


class History(NamedTuple):
    """What was written (N, T), and which of the random models reads it (N,)."""

    tokens: Tensor
    model: Tensor

    def reorder(self, rows):
        return History(self.tokens[rows], self.model[rows])


class Chain:
    """Random logits for every history of tokens, a table of its own for every row."""

    def __init__(self, seed, spread=2.0):
        self.seed, self.spread = seed, spread

    def logits(self, model, history):
        generator = torch.Generator().manual_seed(hash((self.seed, model, *history)) % 2**31)
        logits = torch.randn(WORDS, generator=generator, dtype=torch.float64) * self.spread
        logits[PAD] = -torch.inf
        return logits

    def __call__(self, tokens, state):
        written = torch.cat([state.tokens, tokens[:, None]], dim=1)
        pairs = zip(state.model.tolist(), written.tolist(), strict=True)
        logits = [self.logits(model, history) for model, history in pairs]
        return torch.stack(logits), History(written, state.model)

    def start(self, rows):
        return History(torch.empty(rows, 0, dtype=torch.long), torch.arange(rows))

    def score(self, model, tokens, length_penalty):
        history, total = (2,), 0.0
        for token in tokens:
            total += float(self.logits(model, history).log_softmax(-1)[token])
            history = (*history, token)
        return total / len(tokens) ** length_penalty


def everything(longest):
    """All sequences that end, or are cut at the longest."""
    texts = [[*t, EOS] for n in range(longest) for t in product(range(2, WORDS), repeat=n)]
    return texts + [list(t) for t in product(range(2, WORDS), repeat=longest)]


def firsts(rows):
    return torch.full((rows,), 2)


def stripped(tokens):
    return [token for token in tokens if token != PAD]


@given(seeds, st.integers(1, 4), st.integers(1, 3), st.sampled_from([0.0, 0.6, 1.0, 2.0]))
@settings(deadline=None, max_examples=25)
def test_a_wide_beam_ranks_all_sequences_there_are(seed, longest, rows, length_penalty):
    chain, texts = Chain(seed), everything(longest)
    found = beam(
        chain,
        chain.start(rows),
        firsts(rows),
        beams=len(texts),
        max_new_tokens=longest,
        length_penalty=length_penalty,
        **STOPS,
    )
    for row in range(rows):
        scores = {tuple(t): chain.score(row, t, length_penalty) for t in texts}
        ranked = sorted(texts, key=lambda t: -scores[tuple(t)])
        assert [stripped(t) for t in found.tokens[row].tolist()] == ranked
        assert found.scores[row].tolist() == pytest.approx([scores[tuple(t)] for t in ranked])


def followed(chain, row, *, beams, longest):
    """The search said in lists: what ends is set aside, and fewer are followed from then on."""
    live, done = [((), 0.0)], []
    for _ in range(longest):
        longer = [
            ((*text, token), score + float(log_probability))
            for text, score in live
            for token, log_probability in enumerate(chain.logits(row, (2, *text)).log_softmax(-1))
            if token != PAD
        ]
        best = sorted(longer, key=lambda pair: -pair[1])[: beams - len(done)]
        done += [pair for pair in best if pair[0][-1] == EOS]
        live = [pair for pair in best if pair[0][-1] != EOS]
    return sorted(done + live, key=lambda pair: -pair[1] / len(pair[0]))


@given(seeds, st.integers(1, 6), st.integers(1, 9), st.integers(1, 3))
@settings(deadline=None, max_examples=30)
def test_a_beam_gives_what_is_followed_by_hand(seed, longest, beams, rows):
    chain = Chain(seed)
    limits = {"beams": beams, "max_new_tokens": longest, **STOPS}
    found = beam(chain, chain.start(rows), firsts(rows), **limits)
    for row in range(rows):
        expected = followed(chain, row, beams=beams, longest=longest)
        texts = found.tokens[row, : len(expected)].tolist()
        assert [tuple(stripped(text)) for text in texts] == [text for text, _ in expected]
        assert not found.scores[row, len(expected) :].isfinite().any()


@given(seeds, st.integers(1, 12), st.integers(1, 4))
@settings(deadline=None, max_examples=40)
def test_one_beam_is_greedy(seed, longest, rows):
    chain = Chain(seed)
    one = beam(chain, chain.start(rows), firsts(rows), beams=1, max_new_tokens=longest, **STOPS)
    written = greedy(chain, chain.start(rows), firsts(rows), max_new_tokens=longest, **STOPS)
    assert torch.equal(one.tokens[:, 0], written)


@given(seeds, st.integers(2, 9), st.integers(2, 5), st.integers(2, 3))
@settings(deadline=None, max_examples=20)
def test_rows_are_searched_each_for_itself(seed, longest, beams, rows):
    chain, limits = Chain(seed), {"beams": beams, "max_new_tokens": longest, **STOPS}
    together = beam(chain, chain.start(rows), firsts(rows), **limits)
    for row in range(rows):
        alone = beam(chain, History(*(p[[row]] for p in chain.start(rows))), firsts(1), **limits)
        for k in range(beams):
            assert stripped(alone.tokens[0, k].tolist()) == stripped(
                together.tokens[row, k].tolist()
            )
        torch.testing.assert_close(alone.scores[0], together.scores[row])


def test_a_beam_finds_what_greedy_misses():
    better = 0
    for seed in range(30):
        chain = Chain(seed)
        wide = beam(chain, chain.start(1), firsts(1), beams=4, max_new_tokens=5, **STOPS)
        written = greedy(chain, chain.start(1), firsts(1), max_new_tokens=5, **STOPS)
        ours = chain.score(0, stripped(wide.tokens[0, 0].tolist()), 1.0)
        theirs = chain.score(0, stripped(written[0].tolist()), 1.0)
        better += ours > theirs + 1e-9
    assert better >= 5


def test_a_higher_penalty_prefers_longer_sequences():
    def length(penalty):
        chain = Chain(3, spread=0.2)
        limits = {"beams": 30, "max_new_tokens": 5, "length_penalty": penalty, **STOPS}
        tokens = beam(chain, chain.start(1), firsts(1), **limits).tokens[0, 0]
        return len(stripped(tokens.tolist()))

    assert length(0.0) < length(3.0)
