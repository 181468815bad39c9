"""Greedy and beam search over any model that predicts the next token.

A model is a function `step(tokens, state)`: given the last token of each row (N,), it returns the
logits of the next (N, V) and the new state. The state is whatever the model remembers of each row;
`reorder` picks rows from it, as indices (M,) say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import torch
from torch import Tensor


class State(Protocol):
    """What a model remembers of each row."""

    def reorder(self, rows: Tensor) -> Self:
        """The state of these rows (M,), each as often as it is named."""


S = TypeVar("S", bound=State)
Step = Callable[[Tensor, S], tuple[Tensor, S]]


class Hypotheses(NamedTuple):
    """The sequences (B, K, T) that a beam ended with, best first, and their scores (B, K)."""

    tokens: Tensor
    scores: Tensor


@torch.no_grad()
def greedy(
    step: Step[S], state: S, first: Tensor, *, eos: int, pad: int, max_new_tokens: int
) -> Tensor:
    """The likeliest token again and again, from the first of each row (B,): tokens (B, T).

    A row ends with `eos` and is padded behind it, or is cut at `max_new_tokens`.
    """
    tokens, written = first, []
    ended = torch.zeros_like(first, dtype=torch.bool)
    for _ in range(max_new_tokens):
        logits, state = step(tokens, state)
        tokens = logits.argmax(dim=-1).masked_fill(ended, pad)  # (B,)
        written.append(tokens)
        ended = ended | (tokens == eos)
        if ended.all():
            break
    return torch.stack(written, dim=1)


@torch.no_grad()
def beam(
    step: Step[S],
    state: S,
    first: Tensor,
    *,
    beams: int,
    eos: int,
    pad: int,
    max_new_tokens: int,
    length_penalty: float = 1.0,
) -> Hypotheses:
    """The best of `beams` sequences followed at a time, from the first token of each row (B,).

    A sequence that ends is set aside and the beam goes on with one place less (Sutskever et al.
    2014, section 3.2). The score is the sum of log probabilities over length ** length_penalty (Wu
    et al. 2016, section 7, without its constant); `eos` counts. One beam finds what `greedy` does.
    """
    rows = len(first)
    row = torch.arange(rows, device=first.device)[:, None]  # (B, 1)
    state = state.reorder(row.expand(rows, beams).flatten())
    tokens = first.repeat_interleave(beams)  # (B * K,)
    texts = first.new_empty(rows, beams, 0)
    ended = torch.zeros(rows, beams, dtype=torch.bool, device=first.device)
    scores = torch.full((rows, beams), -torch.inf, device=first.device)
    scores[:, 0] = 0  # all beams are alike at first, so one stands for all
    for _ in range(max_new_tokens):
        logits, state = step(tokens, state)
        vocabulary = logits.shape[-1]
        following = logits.log_softmax(dim=-1).view(rows, beams, vocabulary)
        padding = torch.full_like(following, -torch.inf)
        padding[..., pad] = 0
        totals = scores[..., None] + torch.where(ended[..., None], padding, following)
        # What has ended keeps its place, whatever the others score.
        kept = ended[..., None] & totals.isfinite()
        best = totals.masked_fill(kept, torch.inf).flatten(1).topk(beams).indices  # (B, K)
        origin, token = best // vocabulary, best % vocabulary
        scores = totals.flatten(1).gather(1, best)
        texts = torch.cat([texts[row, origin], token[..., None]], dim=-1)  # (B, K, T)
        ended = ended.gather(1, origin) | (token == eos)
        if (ended | ~scores.isfinite()).all():
            break
        state = state.reorder((row * beams + origin).flatten())
        tokens = token.flatten()
    ends = (texts == eos).int()
    lengths = (ends.cumsum(dim=-1) == ends).sum(dim=-1)  # places with no end before them
    normalized, order = (scores / lengths**length_penalty).sort(dim=-1, descending=True)
    return Hypotheses(texts[row, order], normalized)


class Special(Protocol):
    """The ids of special tokens in a model's config."""

    @property
    def pad(self) -> int:
        """Fills rows up behind their end."""

    @property
    def bos(self) -> int:
        """Stands before the first token of every row."""

    @property
    def eos(self) -> int:
        """Ends a row."""


class Model(Protocol):
    """A model that reads a source and then writes, a token at a time."""

    @property
    def config(self) -> Special:
        """Where its special tokens are told."""

    def encode(self, input_ids: Tensor, attention_mask: Tensor) -> Any:
        """The state before the first token, of source ids and mask (B, S)."""

    def step(self, tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Logits (B, V) of the tokens that follow these (B,), and the state behind them."""


@torch.no_grad()
def generate(
    model: Model,
    input_ids: Tensor,
    attention_mask: Tensor,
    *,
    max_new_tokens: int,
    beams: int = 1,
    length_penalty: float = 1.0,
) -> Tensor:
    """Tokens (B, T) for a source (B, S): the best of each beam, or the greedy ones without beams.

    A row ends with eos and is padded behind it, or is cut at `max_new_tokens`.
    """
    special = model.config
    state = model.encode(input_ids, attention_mask)
    first = torch.full_like(input_ids[:, 0], special.bos)
    limits = {"eos": special.eos, "pad": special.pad, "max_new_tokens": max_new_tokens}
    if beams == 1:
        return greedy(model.step, state, first, **limits)
    found = beam(model.step, state, first, beams=beams, length_penalty=length_penalty, **limits)
    return found.tokens[:, 0]
