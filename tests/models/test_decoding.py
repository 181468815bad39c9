"""Greedy and beam search: beside all sequences there are, beside transformers, and by hand."""

from itertools import product
from types import SimpleNamespace
from typing import NamedTuple

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from wxb.lessons.parity import twin
from wxb.models.decoding import Read, beam, complete, decoder, extend, greedy, positions

PAD, EOS, WORDS = 0, 1, 4
VOCABULARY = 7  # of the sums below
STOPS = {"eos": [EOS], "pad": PAD}
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
        written = torch.cat([state.tokens, tokens], dim=1)
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
    return torch.full((rows, 1), 2)


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
    assert torch.equal(one.tokens[:, 0], written.tokens)
    lengths = (written.tokens != PAD).sum(dim=1)
    torch.testing.assert_close(one.scores[:, 0], written.log_probabilities.sum(dim=1) / lengths)


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
        theirs = chain.score(0, stripped(written.tokens[0].tolist()), 1.0)
        better += ours > theirs + 1e-9
    assert better >= 5


def test_a_higher_penalty_prefers_longer_sequences():
    def length(penalty):
        chain = Chain(3, spread=0.2)
        limits = {"beams": 30, "max_new_tokens": 5, "length_penalty": penalty, **STOPS}
        tokens = beam(chain, chain.start(1), firsts(1), **limits).tokens[0, 0]
        return len(stripped(tokens.tolist()))

    assert length(0.0) < length(3.0)


@given(seeds, st.integers(1, 12), st.integers(1, 4))
@settings(deadline=None, max_examples=20)
def test_log_probabilities_are_those_of_the_tokens_and_0_behind_the_end(seed, longest, rows):
    chain = Chain(seed)
    found = greedy(chain, chain.start(rows), firsts(rows), max_new_tokens=longest, **STOPS)
    for row, (tokens, logs) in enumerate(zip(*found, strict=True)):
        for place, (token, log) in enumerate(zip(tokens.tolist(), logs.tolist(), strict=True)):
            before = (2, *tokens[:place].tolist())
            if EOS in before:
                assert (token, log) == (PAD, 0)
            else:
                expected = chain.logits(row, before).log_softmax(-1)
                assert log == pytest.approx(float(expected[token]))


@pytest.mark.parametrize("search", ["greedy", "beam"])
def test_any_of_several_ends_ends_a_row(search):
    chain, both = Chain(1, spread=0.3), {"eos": [EOS, 3], "pad": PAD, "max_new_tokens": 30}
    if search == "beam":
        texts = beam(chain, chain.start(4), firsts(4), beams=3, **both).tokens.flatten(0, 1)
    else:
        texts = greedy(chain, chain.start(4), firsts(4), **both).tokens
    lasts = [stripped(text)[-1] for text in texts.tolist()]
    assert {*lasts} == {EOS, 3}
    assert all({EOS, 3}.isdisjoint(stripped(text)[:-1]) for text in texts.tolist())


def test_half_precision_rounds_no_probability():
    chain = Chain(0)

    def half(tokens, state):
        logits, state = chain(tokens, state)
        return logits.bfloat16(), state

    logs = greedy(half, chain.start(3), firsts(3), max_new_tokens=4, **STOPS).log_probabilities
    assert logs.dtype == torch.float32
    assert not logs.equal(logs.bfloat16().float())


def test_nothing_is_written_when_nothing_is_asked():
    found = greedy(Chain(0), Chain(0).start(2), firsts(2), max_new_tokens=0, **STOPS)
    assert found.tokens.shape == found.log_probabilities.shape == (2, 0)


# Decoders after a prompt


class Sums:
    """Says the sum of the tokens so far, modulo 7; keeps that sum, if it keeps anything."""

    def __init__(self, *, keeps):
        self.keeps = keeps
        self.calls = []

    def __call__(self, input_ids, attention_mask, position_ids, past_key_values):
        self.calls.append((input_ids.shape, attention_mask.shape, position_ids.tolist()))
        seen = attention_mask[:, -input_ids.shape[1] :]
        before = past_key_values[0][0][:, 0, 0, 0] if past_key_values else 0
        total = (input_ids * seen).sum(dim=1) + before
        logits = torch.nn.functional.one_hot(total % VOCABULARY, VOCABULARY).float()
        kept = total[:, None, None, None]
        return SimpleNamespace(
            logits=logits[:, None], past_key_values=((kept, kept),) if self.keeps else None
        )


def by_hand(row, mask, *, longest, end, pad):
    total = sum(token for token, there in zip(row, mask, strict=True) if there)
    written = []
    for _ in range(longest):
        if end is not None and end in written:
            written.append(pad)
            continue
        written.append(total % VOCABULARY)
        total += written[-1]
    return written


@st.composite
def prompts(draw):
    rows, length = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    ids = draw(st.lists(st.lists(st.integers(0, 6), min_size=length, max_size=length),
                        min_size=rows, max_size=rows))  # fmt: skip
    padding = draw(st.lists(st.integers(0, length - 1), min_size=rows, max_size=rows))
    return ids, [[0] * count + [1] * (length - count) for count in padding]


@given(prompts(), st.integers(1, 8), st.sampled_from([None, 0, 3]), st.booleans())
@settings(deadline=None)
def test_every_row_goes_on_to_its_end_whatever_is_beside_it(drawn, longest, end, keeps):
    ids, mask = drawn
    found = complete(
        Sums(keeps=keeps),
        torch.tensor(ids),
        torch.tensor(mask),
        max_new_tokens=longest,
        eos_token_id=end,
        pad_token_id=5,
    ).tokens
    expected = [
        by_hand(row, seen, longest=longest, end=end, pad=5)
        for row, seen in zip(ids, mask, strict=True)
    ]
    lengths = [row.index(end) + 1 if end in row else longest for row in expected]
    assert found.tolist() == [written[: max(lengths)] for written in expected]


def test_a_cache_spares_reading_again():
    ids, mask = torch.tensor([[1, 2, 3], [0, 4, 4]]), torch.tensor([[1, 1, 1], [0, 1, 1]])
    cached, plain = Sums(keeps=True), Sums(keeps=False)
    outputs = [complete(forward, ids, mask, max_new_tokens=3) for forward in (cached, plain)]
    assert outputs[0].tokens.equal(outputs[1].tokens)
    assert cached.calls == [
        ((2, 3), (2, 3), [[0, 1, 2], [0, 0, 1]]),
        ((2, 1), (2, 4), [[3], [2]]),
        ((2, 1), (2, 5), [[4], [3]]),
    ]
    assert [call[0] for call in plain.calls] == [(2, 3), (2, 4), (2, 5)]
    assert plain.calls[2][2] == [[0, 1, 2, 3, 4], [0, 0, 1, 2, 3]]


def test_the_first_of_several_end_tokens_pads():
    ids = torch.tensor([[1], [3]])  # go on 1 2 4 1 ... and 3 6 5 3 ...
    found = complete(Sums(keeps=True), ids, max_new_tokens=6, eos_token_id=[5, 2])
    assert found.tokens.tolist() == [[1, 2, 5], [3, 6, 5]]


@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 6), st.booleans(), seeds)
@settings(deadline=None, max_examples=20)
def test_beams_of_a_decoder_are_those_of_transformers(rows, beams, longest, use_cache, seed):
    torch.manual_seed(seed)
    shape = {"vocab_size": 30, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 24}
    theirs = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            **shape, initializer_range=0.3, bos_token_id=None, eos_token_id=None
        )
    ).eval()
    ours, *_ = twin(theirs)
    ids, padding = torch.randint(30, (rows, 8)), torch.randint(8, (rows, 1))
    mask = (torch.arange(8) >= padding).long()
    same = transformers.GenerationConfig(
        do_sample=False, num_beams=beams, max_new_tokens=longest, use_cache=use_cache
    )
    expected = theirs.generate(input_ids=ids, attention_mask=mask, generation_config=same)
    found = beam(
        decoder(lambda **inputs: ours(**inputs, use_cache=use_cache)),
        Read(mask, ids[:, :0]),
        ids,
        beams=beams,
        eos=[],
        pad=0,
        max_new_tokens=longest,
    )
    assert found.tokens[:, 0].equal(expected[:, 8:])


def test_positions_count_tokens_and_not_padding():
    mask = torch.tensor([[0, 0, 1, 1], [1, 1, 1, 1], [1, 1, 0, 0]])
    assert positions(mask).tolist() == [[0, 0, 0, 1], [0, 1, 2, 3], [0, 1, 1, 1]]


@pytest.mark.parametrize("before", [0, 1, 4])
def test_new_keys_and_values_come_after_those_there(before):
    key, value = torch.randn(2, 1, 3, before + 2, 5)
    past = (key[:, :, :before], value[:, :, :before]) if before else None
    found = extend(past, key[:, :, before:], value[:, :, before:])
    assert found[0].equal(key)
    assert found[1].equal(value)
