"""Attention masks: True means that a query may attend to a key.

A mask is boolean and broadcasts to (B, heads, T, S), for T queries and S keys; None masks nothing.
Masks are joined with `&`. Models pass them to torch's `scaled_dot_product_attention`:

    softmax(Q Kᵀ / √D) V, with the softmax over the unmasked keys

(Vaswani et al. 2017, equation 1). A query with every key masked gets zeros and no gradient.
"""

import torch
from torch import Tensor


def tokens(attention_mask: Tensor) -> Tensor:  # (B, S), 1 = token, 0 = padding
    """Mask (B, 1, 1, S) that is True for tokens and False for padding."""
    return attention_mask[:, None, None, :].bool()


def causal(queries: int, keys: int, device: torch.device | None = None) -> Tensor:
    """Mask (T, S), True up to the position of each query; queries are the last T of S tokens."""
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)


def decoder(
    attention_mask: Tensor | None,  # (B, S), 1 = token, 0 = padding; None: no padding
    queries: int,
    keys: int,
    device: torch.device,
    *,
    is_causal: bool = True,
) -> Tensor | None:
    """Mask of a decoder, True for the keys that are no padding and, if `is_causal`, not later.

    (B, 1, 1, S), or (B, 1, T, S) if causal; (T, S) without `attention_mask`. The queries are the
    last T of the S tokens. None without `attention_mask` for a single query or if not causal.
    """
    mask = causal(queries, keys, device) if is_causal and queries > 1 else None
    if attention_mask is None:
        return mask
    return tokens(attention_mask) if mask is None else tokens(attention_mask) & mask


def split_heads(vectors: Tensor, size: int) -> Tensor:  # (B, T, heads · D)
    """The vectors of heads of `size` entries each: (B, heads, T, D)."""
    heads: Tensor = vectors.unflatten(-1, (-1, size))  # (B, T, heads, D)
    return heads.transpose(1, 2)
