"""Greedy generation over a language model that can be worked out by hand."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from wxb.models.generation import extend, greedy, positions

VOCABULARY = 7


class Sums:
    """Says the sum of the tokens so far, modulo 7; keeps that sum, if it keeps anything."""

    def __init__(self, *, keeps):
        self.keeps = keeps
        self.calls = []

    def __call__(self, input_ids, attention_mask, position_ids, past):
        self.calls.append((input_ids.shape, attention_mask.shape, position_ids.tolist()))
        seen = attention_mask[:, -input_ids.shape[1] :]
        total = (input_ids * seen).sum(dim=1) + (past[0][0][:, 0, 0, 0] if past else 0)
        logits = torch.nn.functional.one_hot(total % VOCABULARY, VOCABULARY).float()
        kept = total[:, None, None, None]
        return logits, ((kept, kept),) if self.keeps else None


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
    step = Sums(keeps=keeps)
    found = greedy(
        step,
        torch.tensor(ids),
        torch.tensor(mask),
        max_new_tokens=longest,
        eos_token_id=end,
        pad_token_id=5,
    )
    expected = [
        by_hand(row, seen, longest=longest, end=end, pad=5)
        for row, seen in zip(ids, mask, strict=True)
    ]
    lengths = [row.index(end) + 1 if end in row else longest for row in expected]
    assert found.tolist() == [
        [*row, *written[: max(lengths)]] for row, written in zip(ids, expected, strict=True)
    ]


def test_a_cache_spares_reading_again():
    ids, mask = torch.tensor([[1, 2, 3], [0, 4, 4]]), torch.tensor([[1, 1, 1], [0, 1, 1]])
    cached, plain = Sums(keeps=True), Sums(keeps=False)
    outputs = [greedy(step, ids, mask, max_new_tokens=3) for step in (cached, plain)]
    assert outputs[0].equal(outputs[1])
    assert cached.calls == [
        ((2, 3), (2, 3), [[0, 1, 2], [0, 0, 1]]),
        ((2, 1), (2, 4), [[3], [2]]),
        ((2, 1), (2, 5), [[4], [3]]),
    ]
    assert [call[0] for call in plain.calls] == [(2, 3), (2, 4), (2, 5)]
    assert plain.calls[2][2] == [[0, 1, 2, 3, 4], [0, 0, 1, 2, 3]]


def test_any_of_several_end_tokens_ends_a_row_and_the_first_pads():
    ids = torch.tensor([[1], [3]])  # go on 1 2 4 1 ... and 3 6 5 3 ...
    found = greedy(Sums(keeps=True), ids, max_new_tokens=6, eos_token_id=[5, 2])
    assert found.tolist() == [[1, 1, 2, 5], [3, 3, 6, 5]]


def test_nothing_is_written_when_nothing_is_asked():
    ids = torch.tensor([[1, 2]])
    assert greedy(Sums(keeps=True), ids, max_new_tokens=0).equal(ids)


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
