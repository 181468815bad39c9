"""Who may see whom, said in one way throughout: True means that a query may see a key.

A mask is boolean and broadcasts to (B, heads, T, S), for T queries and S keys; None lets every
query see every key. Masks are joined with `&`. A query that sees nothing gets zeros.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812


def padding(attention_mask: Tensor) -> Tensor:  # (B, S), 1 = token, 0 = padding
    """Tokens may be seen and padding may not: (B, 1, 1, S)."""
    return attention_mask[:, None, None, :].bool()


def causal(queries: int, keys: int, device: torch.device | None = None) -> Tensor:
    """A token sees itself and those before it: (T, S). The queries are the last T of the keys."""
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)


def decoder(
    attention_mask: Tensor | None,  # (B, S), 1 = token, 0 = padding; None: no padding
    queries: int,
    keys: int,
    device: torch.device,
    *,
    is_causal: bool = True,
) -> Tensor | None:
    """What the last T of S tokens see that are read from left to right, some of them padding.

    Unless `is_causal`, they see those after them, too. None where every query sees all, as while
    generating without padding.
    """
    seen = causal(queries, keys, device) if is_causal and queries > 1 else None
    if attention_mask is None:
        return seen
    return padding(attention_mask) if seen is None else padding(attention_mask) & seen


def attend(
    query: Tensor,  # (B, H, T, D)
    key: Tensor,  # (B, G, S, D), where G divides H
    value: Tensor,  # (B, G, S, D)
    mask: Tensor | None = None,
    *,
    dropout: float = 0.0,
    scale: float | None = None,
) -> Tensor:
    """Scaled dot-product attention (Vaswani et al. 2017, equation 1): (B, H, T, D).

        softmax(Q Kᵀ · scale) V, the softmax over the keys that `mask` lets a query see

    `scale` is 1 / √D unless given, `dropout` the share of weights dropped. A query that sees
    nothing gets zeros, and passes no gradient on. With fewer heads of keys than of queries, H / G
    neighbouring heads of queries share one (Ainslie et al. 2023).
    """
    return F.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=mask,
        dropout_p=dropout,
        scale=scale,
        enable_gqa=query.shape[1] != key.shape[1],
    )
