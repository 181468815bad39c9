"""Scaled dot-product and multi-head attention (Vaswani et al. 2017).

A mask is boolean, True for keys that a query may attend to, and broadcasts to the scores
(B, h, T, S). A query that may attend to no key gets weights of 0, a context of 0 and no gradient.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from wxb.models.masks import split_heads


def softmax(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Softmax over the keys where `mask` is true (None: all keys), 0 for others: (..., S)."""
    if mask is None:
        return scores.softmax(dim=-1)
    # A finite number instead of -inf: the softmax of a row of -inf is NaN, and so is its gradient.
    finite = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return finite.softmax(dim=-1).masked_fill(~mask, 0)


def attention_weights(queries: Tensor, keys: Tensor, mask: Tensor | None = None) -> Tensor:
    """softmax(Q K' / √d) of queries (..., T, d) and keys (..., S, d), 0 if masked: (..., T, S)."""
    return softmax(queries @ keys.mT * queries.shape[-1] ** -0.5, mask)


class Dropout(nn.Dropout):
    """Dropout (Srivastava et al. 2014) with cheap random numbers on a CPU.

    Same as `nn.Dropout` on a GPU. On a CPU, one random byte decides on each value, so `p` is
    rounded to a multiple of 1 / 256, unless that is 0 or 1. `nn.Dropout` draws a whole number for
    each value, which takes a quarter of the time of training a small Transformer.
    """

    def forward(self, inputs: Tensor) -> Tensor:
        """Zero random inputs and scale up the rest, if training. On a CPU, `p` is rounded."""
        threshold = round(self.p * 256)
        if not self.training or inputs.device.type != "cpu" or not 0 < threshold < 256:
            return super().forward(inputs)
        numbers = torch.empty(-(-inputs.numel() // 8), dtype=torch.int64)  # of 8 bytes each
        random_bytes = numbers.random_(torch.iinfo(torch.int64).min, None).view(torch.uint8)
        keep = (random_bytes[: inputs.numel()] >= threshold).view(inputs.shape)
        return inputs * (keep * (256 / (256 - threshold))).to(inputs.dtype)


class MultiHeadAttention(nn.Module):
    """Multi-head attention (section 3.2.2) with the parameter names of `nn.MultiheadAttention`.

    Keys and values are computed separately, so that generation can cache them.
    """

    def __init__(self, width: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.size = width // heads
        self.in_proj_weight = nn.Parameter(torch.empty(3 * width, width))
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * width))
        self.out_proj = nn.Linear(width, width)
        self.dropout = Dropout(dropout)
        nn.init.xavier_uniform_(self.in_proj_weight)
        nn.init.zeros_(self.out_proj.bias)

    def keys_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values (B, h, S, d) of a memory (B, S, C)."""
        width = memory.shape[-1]
        both = F.linear(memory, self.in_proj_weight[width:], self.in_proj_bias[width:])
        keys, values = both.chunk(2, dim=-1)  # (B, S, C)
        return split_heads(keys, self.size), split_heads(values, self.size)

    def forward(
        self,
        inputs: Tensor,  # (B, T, C)
        keys: Tensor,  # (B, h, S, d)
        values: Tensor,  # (B, h, S, d)
        mask: Tensor | None = None,  # (B, h, T, S); None: all queries attend to all keys
    ) -> Tensor:
        """Attention output (B, T, C)."""
        context = self.dropout(self.weights(inputs, keys, mask)) @ values  # (B, h, T, d)
        return self.out_proj(context.transpose(1, 2).flatten(2))

    def weights(self, inputs: Tensor, keys: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attention weights (B, h, T, S) of inputs and keys as in `forward`, without dropout."""
        width = inputs.shape[-1]
        queries = F.linear(inputs, self.in_proj_weight[:width], self.in_proj_bias[:width])
        return attention_weights(split_heads(queries, self.size), keys, mask)


def sinusoids(length: int, width: int) -> NDArray[np.float64]:
    """Sinusoidal position encodings (T, C): sines in even columns, cosines in odd (section 3.5).

    The wavelengths grow geometrically from 2 pi towards 10,000 times 2 pi. The width is even.
    """
    frequencies = 10_000.0 ** (-np.arange(0, width, 2) / width)
    angles = np.arange(length)[:, None] * frequencies  # (T, C / 2)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(length, width)
