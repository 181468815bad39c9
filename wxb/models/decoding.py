"""Greedy and beam search over any model that predicts the next token.

A model is a function `step(tokens, state)`: given new tokens of each row (N, T), at first all of a
prompt and then one at a time, it returns the logits of the token after them (N, V) and the new
state. The state is whatever the model remembers of each row; `reorder` picks rows from it, as
indices (M,) say. `decoder` makes such a step of a decoder that keeps keys and values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

KeysValues = tuple[Tensor, Tensor]  # of one attention layer, (B, heads, S, D) each
Cache = tuple[KeysValues, ...]  # of all its layers: the keys and values of the tokens read so far


class State(Protocol):
    """What a model remembers of each row."""

    def reorder(self, rows: Tensor) -> Self:
        """The state of these rows (M,), each as often as it is named."""


S = TypeVar("S", bound=State)
Step = Callable[[Tensor, S], tuple[Tensor, S]]


class Continuation(NamedTuple):
    """The likeliest tokens (B, T), and the log-probability of each (B, T), 0 behind the end."""

    tokens: Tensor
    log_probabilities: Tensor


class Hypotheses(NamedTuple):
    """The sequences (B, K, T) that a beam ended with, best first, and their scores (B, K)."""

    tokens: Tensor
    scores: Tensor


@torch.no_grad()
def greedy(
    step: Step[S],
    state: S,
    tokens: Tensor,
    *,
    eos: Sequence[int],
    pad: int,
    max_new_tokens: int,
) -> Continuation:
    """The likeliest token again and again, after the first tokens of each row (B, T).

    A row ends with any of `eos` and is padded behind it, or is cut at `max_new_tokens`.
    """
    ends = torch.tensor(eos, dtype=torch.long, device=tokens.device)
    ended = torch.zeros_like(tokens[:, 0], dtype=torch.bool)  # (B,)
    written, logs = tokens[:, :0], torch.empty_like(tokens[:, :0], dtype=torch.float)
    for _ in range(max_new_tokens):
        logits, state = step(tokens, state)
        tokens = logits.argmax(dim=-1, keepdim=True).masked_fill(ended[:, None], pad)  # (B, 1)
        # In half precision the probabilities would be rounded.
        exact = torch.promote_types(logits.dtype, torch.float)
        likeliest = logits.log_softmax(dim=-1, dtype=exact).amax(dim=-1, keepdim=True)
        written = torch.cat([written, tokens], dim=1)
        logs = torch.cat([logs, likeliest.masked_fill(ended[:, None], 0)], dim=1)
        ended = ended | torch.isin(tokens[:, 0], ends)
        if ended.all():
            break
    return Continuation(written, logs)


@torch.no_grad()
def beam(
    step: Step[S],
    state: S,
    tokens: Tensor,
    *,
    beams: int,
    eos: Sequence[int],
    pad: int,
    max_new_tokens: int,
    length_penalty: float = 1.0,
) -> Hypotheses:
    """The best of `beams` sequences followed at a time, after the first tokens of each row (B, T).

    A sequence that ends is set aside and the beam goes on with one place less (Sutskever et al.
    2014, section 3.2). The score is the sum of log probabilities over length ** length_penalty (Wu
    et al. 2016, section 7, without its constant); the end counts. One beam finds what `greedy`
    does. There are fewer than `beams` sequences where no more can be written, and those that cannot
    be written at all score -inf.
    """
    ends = torch.tensor(eos, dtype=torch.long, device=tokens.device)
    row = torch.arange(len(tokens), device=tokens.device)[:, None]  # (B, 1)
    texts = tokens[:, None, :0]  # (B, K, T), of one beam at first
    scores = torch.zeros_like(row, dtype=torch.float)  # (B, K)
    ended = torch.zeros_like(row, dtype=torch.bool)  # (B, K)
    for _ in range(max_new_tokens):
        logits, state = step(tokens, state)
        width, vocabulary = scores.shape[1], logits.shape[-1]
        following = logits.log_softmax(dim=-1).unflatten(0, (-1, width))  # (B, K, V)
        padding = torch.full_like(following, -torch.inf)
        padding[..., pad] = 0
        totals = scores[..., None] + torch.where(ended[..., None], padding, following)
        # What has ended keeps its place, whatever the others score.
        kept = ended[..., None] & totals.isfinite()
        ranked = totals.masked_fill(kept, torch.inf).flatten(1)
        best = ranked.topk(min(beams, ranked.shape[1])).indices  # (B, K)
        origin, token = best // vocabulary, best % vocabulary
        scores = totals.flatten(1).gather(1, best)
        texts = torch.cat([texts[row, origin], token[..., None]], dim=-1)
        ended = ended.gather(1, origin) | torch.isin(token, ends)
        if (ended | ~scores.isfinite()).all():
            break
        state = state.reorder((row * width + origin).flatten())
        tokens = token.view(-1, 1)
    lengths = _length(texts, ends)
    normalized, order = (scores / lengths**length_penalty).sort(dim=-1, descending=True)
    return Hypotheses(texts[row, order], normalized)


def _length(tokens: Tensor, ends: Tensor) -> Tensor:
    """How many tokens (...) each row of (..., T) has with no end before them: the end counts."""
    closed = torch.isin(tokens, ends).int()
    return (closed.cumsum(dim=-1) == closed).sum(dim=-1)


# Encoder and decoder


class Model(Protocol):
    """A model that reads a source and then writes, a token at a time."""

    @property
    def config(self) -> Any:
        """Its settings, which name the ids of the special tokens `pad`, `bos` and `eos`."""

    def encode(self, input_ids: Tensor, attention_mask: Tensor) -> Any:
        """The state before the first token, of source ids and mask (B, S)."""

    def step(self, tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Logits (B, V) of the tokens that follow these (B, 1), and the state behind them."""


@torch.no_grad()
def search(
    model: Model,
    input_ids: Tensor,
    attention_mask: Tensor,
    *,
    max_new_tokens: int,
    beams: int = 1,
    length_penalty: float = 1.0,
) -> Hypotheses:
    """What each beam ends with for a source (B, S), or the greedy sequence alone without beams.

    A sequence ends with eos and is padded behind it, or is cut at `max_new_tokens`; scores are as
    of `beam`.
    """
    special = model.config
    state = model.encode(input_ids, attention_mask)
    first = torch.full_like(input_ids[:, :1], special.bos)
    limits: dict[str, Any] = {
        "eos": [special.eos],
        "pad": special.pad,
        "max_new_tokens": max_new_tokens,
    }
    if beams == 1:
        tokens, logs = greedy(model.step, state, first, **limits)
        lengths = _length(tokens, torch.tensor([special.eos], device=tokens.device))
        return Hypotheses(tokens[:, None], (logs.sum(dim=1) / lengths**length_penalty)[:, None])
    return beam(model.step, state, first, beams=beams, length_penalty=length_penalty, **limits)


def generate(model: Model, input_ids: Tensor, attention_mask: Tensor, **options: Any) -> Tensor:
    """The best that `search` finds, with its options: tokens (B, T) for a source (B, S)."""
    return search(model, input_ids, attention_mask, **options).tokens[:, 0]


# Decoder alone, after a prompt


class Read(NamedTuple):
    """What a decoder has read of each row: its keys and values, or without these its ids."""

    attention_mask: Tensor  # (B, S), 1 = token, 0 = padding; with those that come next
    input_ids: Tensor  # (B, R), read again with those that come next: none where a cache is kept
    past_key_values: Any = None  # a Cache, or transformers' own, of which no rows are picked here

    def reorder(self, rows: Tensor) -> Read:
        """What was read of these rows (M,)."""
        past = self.past_key_values
        if past is not None:
            past = tuple((key[rows], value[rows]) for key, value in past)
        return Read(self.attention_mask[rows], self.input_ids[rows], past)


def decoder(forward: Callable[..., Any]) -> Step[Read]:
    """The step of a decoder whose `forward` takes and gives what those of transformers do.

    One that gives no `past_key_values` is given all tokens again, each time.
    """

    def step(tokens: Tensor, read: Read) -> tuple[Tensor, Read]:
        ids, mask = torch.cat([read.input_ids, tokens], dim=1), read.attention_mask
        output = forward(
            input_ids=ids,
            attention_mask=mask,
            position_ids=positions(mask)[:, -ids.shape[1] :],
            past_key_values=read.past_key_values,
        )
        past = getattr(output, "past_key_values", None)
        again = ids if past is None else ids[:, :0]
        return output.logits[:, -1], Read(F.pad(mask, (0, 1), value=1), again, past)

    return step


def complete(
    forward: Callable[..., Any],
    input_ids: Tensor,  # (B, T), padded on the left
    attention_mask: Tensor | None = None,  # (B, T), 1 = token, 0 = padding
    *,
    max_new_tokens: int,
    eos_token_id: int | Sequence[int] | None = None,
    pad_token_id: int | None = None,
) -> Continuation:
    """What a decoder writes after each prompt; `forward` as of `decoder`, the rest as of `greedy`.

    Rows are padded with the (first) end token unless `pad_token_id` is given.
    """
    eos = [eos_token_id] if isinstance(eos_token_id, int) else [*(eos_token_id or ())]
    if pad_token_id is None:
        pad_token_id = eos[0] if eos else 0  # without an end there is no padding
    mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
    return greedy(
        decoder(forward),
        Read(mask, input_ids[:, :0]),
        input_ids,
        eos=eos,
        pad=pad_token_id,
        max_new_tokens=max_new_tokens,
    )


def positions(attention_mask: Tensor) -> Tensor:  # (B, S)
    """The place of each token among the tokens of its row, from 0 (B, S); padding has 0."""
    return (attention_mask.long().cumsum(dim=-1) - 1).clamp(min=0)


def extend(past: KeysValues | None, key: Tensor, value: Tensor) -> KeysValues:
    """The keys and values of one layer with those of new tokens appended."""
    if past is None:
        return key, value
    return torch.cat([past[0], key], dim=2), torch.cat([past[1], value], dim=2)


class GenerationMixin(nn.Module):
    """What lets a causal language model write; named after that of transformers."""

    @torch.inference_mode()
    def generate(
        self,
        input_ids: Tensor,  # (B, T), padded on the left
        attention_mask: Tensor | None = None,  # (B, T)
        *,
        max_new_tokens: int,
        eos_token_id: int | Sequence[int] | None = None,
        pad_token_id: int | None = None,
        use_cache: bool = True,
    ) -> Tensor:
        """Continue every row with the likeliest tokens: ids (B, T + N), prompts included.

        `N` is that of the longest continuation; see `complete`.
        """
        written = complete(
            partial(self, use_cache=use_cache, logits_to_keep=1),
            input_ids,
            attention_mask,
            max_new_tokens=max_new_tokens,
            eos_token_id=eos_token_id,
            pad_token_id=pad_token_id,
        )
        return torch.cat([input_ids, written.tokens], dim=1)
