"""Greedy generation: the likeliest next token, again and again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

KeysValues = tuple[Tensor, Tensor]  # of one attention layer, (B, heads, S, D) each
Cache = tuple[KeysValues, ...]  # of all its layers: the keys and values of the tokens read so far


# A model as `greedy` sees it. It is given the ids of the new tokens (B, T), the attention mask of
# all tokens so far (B, S), the positions of the new ones (B, T) and what it kept of those before;
# it gives the logits after the last token (B, V), and what to keep. One that keeps None is given
# all tokens again, each time.
Step = Callable[[Tensor, Tensor, Tensor, Cache | None], tuple[Tensor, Cache | None]]


@torch.inference_mode()
def greedy(
    step: Step,
    input_ids: Tensor,  # (B, T), padded on the left
    attention_mask: Tensor | None = None,  # (B, T), 1 = token, 0 = padding
    *,
    max_new_tokens: int,
    eos_token_id: int | Sequence[int] | None = None,
    pad_token_id: int | None = None,
) -> Tensor:
    """Continue every row up to an end token or `max_new_tokens`: ids (B, T + N), prompts included.

    Rows that ended first are padded on the right, with the (first) end token unless
    `pad_token_id` is given. `N` is that of the longest continuation.
    """
    ends = torch.tensor([] if eos_token_id is None else eos_token_id, dtype=torch.long)
    ends = ends.to(input_ids.device).reshape(-1)
    if pad_token_id is None and len(ends):
        pad_token_id = int(ends[0])
    mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
    ended = torch.zeros_like(input_ids[:, 0], dtype=torch.bool)  # (B,)
    unread, past = input_ids, None
    for _ in range(max_new_tokens):
        logits, past = step(unread, mask, positions(mask)[:, -unread.shape[1] :], past)
        chosen = logits.argmax(dim=-1)  # (B,)
        if pad_token_id is not None:
            chosen = chosen.masked_fill(ended, pad_token_id)
        input_ids = torch.cat([input_ids, chosen[:, None]], dim=1)
        mask = torch.cat([mask, torch.ones_like(mask[:, :1])], dim=1)
        ended |= torch.isin(chosen, ends)
        if ended.all():
            break
        unread = input_ids if past is None else chosen[:, None]
    return input_ids


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
        """Continue every row with the likeliest tokens; see `greedy`."""

        def step(
            ids: Tensor, mask: Tensor, positions: Tensor, past: Cache | None
        ) -> tuple[Tensor, Cache | None]:
            output = self(
                ids,
                attention_mask=mask,
                position_ids=positions,
                past_key_values=past,
                use_cache=use_cache,
                logits_to_keep=1,
            )
            return output.logits[:, -1], output.past_key_values

        return greedy(
            step,
            input_ids,
            attention_mask,
            max_new_tokens=max_new_tokens,
            eos_token_id=eos_token_id,
            pad_token_id=pad_token_id,
        )
