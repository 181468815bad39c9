"""Greedy and beam search over any model that predicts the next token.

A model is a function `step(tokens, state)`. It reads new tokens of each row (N, T), first a whole
prompt and then one token at a time, and returns the logits of the next token (N, V) and the new
state. The state holds what the model needs of each row; its `reorder` selects rows by index (M,).
`decoder_step` makes such a function from a decoder.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

KeysValues = tuple[Tensor, Tensor]  # of one attention layer, (B, heads, S, D) each
Cache = tuple[KeysValues, ...]  # of all its layers: the keys and values of the tokens read so far
MIN_SHARED = 16  # tokens; a shorter common start of prompts is not worth a call of its own


class State(Protocol):
    """The state of each row in generation."""

    def reorder(self, rows: Tensor) -> Self:
        """The state of these rows (M,), in this order; rows may repeat."""


S = TypeVar("S", bound=State)
Step = Callable[[Tensor, S], tuple[Tensor, S]]


class Continuation(NamedTuple):
    """The most likely tokens (B, T), and the log-probability of each (B, T), 0 after the end."""

    tokens: Tensor
    log_probabilities: Tensor


class Hypotheses(NamedTuple):
    """The final sequences (B, K, T) of a beam search, best first, and their scores (B, K)."""

    tokens: Tensor
    scores: Tensor


@torch.no_grad()
def greedy_search(
    step: Step[S], state: S, tokens: Tensor, *, eos: Sequence[int], pad: int, max_new_tokens: int
) -> Continuation:
    """Continue the first tokens of each row (B, T) with the most likely token at each step.

    Returns only the new tokens, with log probabilities. A row ends with any of `eos`, and is then
    padded, or is truncated at `max_new_tokens`. Rows that have ended leave the batch: `step` gets
    the tokens of the others, and their state from `reorder`.
    """
    ends = torch.tensor(eos, dtype=torch.long, device=tokens.device)
    rows = torch.arange(len(tokens), device=tokens.device)  # (R,), those that have not ended
    generated = tokens.new_full((len(tokens), max_new_tokens), pad)
    logs, dtype, length = torch.zeros_like(generated, dtype=torch.double), torch.float, 0
    while len(rows) and length < max_new_tokens:
        logits, state = step(tokens, state)
        tokens = logits.argmax(dim=-1, keepdim=True)  # (R, 1)
        # At least float32: half precision would round the probabilities.
        dtype = torch.promote_types(logits.dtype, torch.float)
        log = logits.log_softmax(dim=-1, dtype=dtype).gather(-1, tokens)
        generated[rows, length], logs[rows, length] = tokens[:, 0], log[:, 0].double()
        length += 1
        (left,) = torch.where(~torch.isin(tokens[:, 0], ends))
        if len(left) < len(rows):
            rows, tokens, state = rows[left], tokens[left], state.reorder(left)
    return Continuation(generated[:, :length], logs[:, :length].to(dtype))


@torch.no_grad()
def beam_search(
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
    """Continue the first tokens of each row (B, T) with the best sequences of a beam search.

    A finished sequence takes one of the `beams` places (Sutskever et al. 2014, section 3.2). The
    score is the sum of log probabilities / length ** length_penalty (Wu et al. 2016, section 7,
    without its constant); the end token counts. One beam finds the sequence of `greedy_search`.
    After the prompt, `step` gets the B · K sequences, also those that have ended. Returns only the
    new tokens, and fewer sequences if no more exist; impossible ones score -inf.
    """
    ends = torch.tensor(eos, dtype=torch.long, device=tokens.device)
    row = torch.arange(len(tokens), device=tokens.device)[:, None]  # (B, 1)
    texts = tokens[:, None, :0]  # (B, K, T), of one beam at first
    scores = torch.zeros_like(row, dtype=torch.float)  # (B, K)
    ended = torch.zeros_like(row, dtype=torch.bool)  # (B, K)
    for _ in range(max_new_tokens):
        logits, state = step(tokens, state)
        width, vocabulary = scores.shape[1], logits.shape[-1]
        logs = logits.log_softmax(dim=-1).unflatten(0, (-1, width))  # (B, K, V)
        padding = torch.full_like(logs, -torch.inf)
        padding[..., pad] = 0
        totals = scores[..., None] + torch.where(ended[..., None], padding, logs)
        # A finished sequence keeps its place, whatever the others score.
        is_finished = ended[..., None] & totals.isfinite()
        ranked = totals.masked_fill(is_finished, torch.inf).flatten(1)
        best = ranked.topk(min(beams, ranked.shape[1])).indices  # (B, K)
        origin, token = best // vocabulary, best % vocabulary
        scores = totals.flatten(1).gather(1, best)
        texts = torch.cat([texts[row, origin], token[..., None]], dim=-1)
        ended = ended.gather(1, origin) | torch.isin(token, ends)
        if (ended | ~scores.isfinite()).all():
            break
        state = state.reorder((row * width + origin).flatten())
        tokens = token.view(-1, 1)
    lengths = _length_with_end(texts, ends)
    normalized, order = (scores / lengths**length_penalty).sort(dim=-1, descending=True)
    return Hypotheses(texts[row, order], normalized)


def _length_with_end(tokens: Tensor, eos: Tensor) -> Tensor:
    """Number of tokens (...) of each row (..., T) up to and with its first id of `eos`, else T."""
    is_end = torch.isin(tokens, eos).int()
    return (is_end.cumsum(dim=-1) == is_end).sum(dim=-1)


# Encoder and decoder


@torch.no_grad()
def search_targets(
    model: Any,
    input_ids: Tensor,
    attention_mask: Tensor,
    *,
    max_new_tokens: int,
    beams: int = 1,
    length_penalty: float = 1.0,
) -> Hypotheses:
    """The `beams` best targets (B, K, T) of sources (B, S), best first; if 1, by greedy search.

    `model.encode(input_ids, attention_mask)` is the state before the first target token, and
    `model.step` a step function. `model.config` has the ids `pad`, `bos` and `eos`.

    A sequence ends with eos and is then padded, or is truncated at `max_new_tokens`. Scores are as
    in `beam_search`.
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
        tokens, logs = greedy_search(model.step, state, first, **limits)
        lengths = _length_with_end(tokens, torch.tensor([special.eos], device=tokens.device))
        return Hypotheses(tokens[:, None], (logs.sum(dim=1) / lengths**length_penalty)[:, None])
    return beam_search(
        model.step, state, first, beams=beams, length_penalty=length_penalty, **limits
    )


# Decoder only


class DecoderState(NamedTuple):
    """The tokens that a decoder has read: their keys and values, or without a cache their ids."""

    attention_mask: Tensor  # (B, S), 1 = token, 0 = padding; of these tokens and the next
    input_ids: Tensor  # (B, R), to be read again with the next tokens; R = 0 with a cache
    past_key_values: Any = None  # a Cache, or that of transformers, which `reorder` changes

    def reorder(self, rows: Tensor) -> "DecoderState":
        """The state of these rows (M,); a cache of transformers is reordered in place."""
        past = self.past_key_values
        if hasattr(past, "reorder_cache"):
            past.reorder_cache(rows)
        elif past is not None:
            past = tuple((key[rows], value[rows]) for key, value in past)
        return DecoderState(self.attention_mask[rows], self.input_ids[rows], past)


def decoder_step(forward: Callable[..., Any]) -> Step[DecoderState]:
    """Make a step function that calls `forward` with the arguments of a decoder of transformers.

    Prompts are padded on the left. The cache is the `past_key_values` of the output, or the
    `cache_params` of a recurrent model if they can be reordered; with these, later steps pass no
    mask. If the output has neither, every step reads all tokens again.
    """
    name = "past_key_values"

    def step(tokens: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        nonlocal name
        ids, mask = torch.cat([state.input_ids, tokens], dim=1), state.attention_mask
        # A recurrent model expects a mask of the tokens that it reads.
        follows = name == "cache_params" and state.past_key_values is not None
        output = forward(
            input_ids=ids,
            attention_mask=None if follows else mask,
            position_ids=positions(mask)[:, -ids.shape[1] :],
            **{name: state.past_key_values},
        )
        past = getattr(output, "past_key_values", None)
        if past is None and hasattr(getattr(output, "cache_params", None), "reorder_cache"):
            past, name = output.cache_params, "cache_params"
        uncached = ids if past is None else ids[:, :0]
        return output.logits[:, -1], DecoderState(F.pad(mask, (0, 1), value=1), uncached, past)

    return step


def decoder_forward(model: Callable[..., Any], encoded: Any, **options: Any) -> Callable[..., Any]:
    """Make a `forward` for `decoder_step` that calls an encoder-decoder model of transformers.

    It passes `encoded`, `options`, the cache, and other inputs under names that begin with
    `decoder_`. `encoded` is not reordered, so the model must cache its keys and values.
    """

    def forward(past_key_values: Any, **inputs: Tensor) -> Any:
        return model(
            encoder_outputs=encoded,
            past_key_values=past_key_values,
            **{f"decoder_{name}": tensor for name, tensor in inputs.items()},
            **options,
        )

    return forward


@torch.no_grad()
def complete(
    forward: Callable[..., Any],
    input_ids: Tensor,  # (B, T), padded on the left
    attention_mask: Tensor | None = None,  # (B, T), 1 = token, 0 = padding; None: all 1
    *,
    max_new_tokens: int,
    eos_token_id: int | Sequence[int] = (),  # (): none ends a row
    pad_token_id: int = 0,
    share_start: bool = False,
) -> Continuation:
    """Complete prompts by `greedy_search`; `forward` is that of `decoder_step`.

    With `share_start`, the tokens with which all prompts begin are read once, for all rows. Padding
    is then between these and the rest, so the model must measure distances by `position_ids`, and
    `forward` must have no other inputs of each row.
    """
    mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
    step, state = decoder_step(forward), DecoderState(mask, input_ids[:, :0])
    start = _common_start(input_ids, mask) if share_start else input_ids.new_empty(0)
    if (length := len(start)) >= MIN_SHARED:
        _, state = step(start[None], DecoderState(torch.ones_like(start)[None], start[None, :0]))
        state = state.reorder(torch.zeros_like(input_ids[:, 0]))
        mask = torch.cat([torch.ones_like(mask[:, :length]), mask[:, :-length]], dim=1)
        input_ids, state = input_ids[:, length:], state._replace(attention_mask=mask)
    return greedy_search(
        step,
        state,
        input_ids,
        eos=[eos_token_id] if isinstance(eos_token_id, int) else eos_token_id,
        pad=pad_token_id,
        max_new_tokens=max_new_tokens,
    )


def _common_start(input_ids: Tensor, attention_mask: Tensor) -> Tensor:  # padded on the left
    """The first tokens (P,) that all of some rows (B, T) share; each keeps one token or more."""
    lengths = attention_mask.sum(dim=1, keepdim=True)  # (B, 1)
    steps = torch.arange(max(0, int(lengths.min()) - 1), device=input_ids.device)
    firsts = input_ids.gather(1, input_ids.shape[1] - lengths + steps)
    is_shared = (firsts == firsts[0]).all(dim=0).cumprod(dim=0).bool() & (len(firsts) > 1)
    return firsts[0][is_shared]


def positions(attention_mask: Tensor) -> Tensor:  # (B, S)
    """Position of each token among those of its row, from 0 (B, S); 0 for padding on the left."""
    return (attention_mask.long().cumsum(dim=-1) - 1).clamp(min=0)


def extend(past: KeysValues | None, key: Tensor, value: Tensor) -> KeysValues:
    """Keys and values (B, heads, S + T, D) of one layer: `past`, then those of T new tokens."""
    if past is None:
        return key, value
    return torch.cat([past[0], key], dim=2), torch.cat([past[1], value], dim=2)


class DecoderOutput(NamedTuple):
    """Output of a decoder without its head."""

    last_hidden_state: Tensor  # (B, T, C)
    past_key_values: Cache | None


class CausalLMOutput(NamedTuple):
    """Logits of the next token, and the mean cross-entropy if labels are given."""

    loss: Tensor | None
    logits: Tensor  # (B, T, V)
    past_key_values: Cache | None


class CausalLM(nn.Module):
    """A decoder with a linear head over the vocabulary.

    Subclasses have the decoder under the name `base_model_prefix`, and `lm_head`.
    """

    base_model_prefix: ClassVar[str]

    def forward(
        self,
        input_ids: Tensor | None = None,  # (B, T)
        *,
        labels: Tensor | None = None,  # (B, T), usually `input_ids`, shifted here; -100 is ignored
        logits_to_keep: int = 0,  # of the last tokens, only without labels; 0: of all
        **inputs: Any,
    ) -> CausalLMOutput:
        """Logits after each token, and the loss if labels are given; `inputs` as in the decoder."""
        decoded = self.get_submodule(self.base_model_prefix)(input_ids, **inputs)
        hidden = decoded.last_hidden_state[:, -logits_to_keep:]  # (B, T, C)
        logits = self.get_submodule("lm_head")(hidden)  # (B, T, V)
        loss = None
        if labels is not None:
            targets = F.pad(labels[:, 1:], (0, 1), value=-100)  # the last token predicts no label
            loss = F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())
        return CausalLMOutput(loss, logits, decoded.past_key_values)
