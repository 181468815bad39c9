"""LLaMA (Touvron et al. 2023; Grattafiori et al. 2024), a decoder with rotary positions.

Modules are named as in Hugging Face's checkpoints, which load without conversion. Shapes: B texts
of T new tokens after S - T cached ones, width C, H query heads and G key and value heads of D each,
inner width I, vocabulary V.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from wxb.models import configuration, masks
from wxb.models.decoding import Cache, CausalLM, DecoderOutput, KeysValues, extend

ROPE = ("default", "llama3")  # supported types


@dataclass(frozen=True)
class Config(configuration.Config):
    """The shape of a LLaMA; names and values as in Hugging Face's `LlamaConfig`."""

    vocab_size: int = 32000
    hidden_size: int = 4096
    intermediate_size: int = 11008
    num_hidden_layers: int = 32
    num_attention_heads: int = 32
    num_key_value_heads: int = 32
    head_dim: int = 128
    rms_norm_eps: float = 1e-6
    rope_parameters: Mapping[str, Any] = field(
        default_factory=lambda: {"rope_type": "default", "rope_theta": 10_000.0}
    )
    attention_dropout: float = 0.0
    pad_token_id: int | None = None
    tie_word_embeddings: bool = False
    is_causal: bool = True  # False: bidirectional attention

    supported: ClassVar = {
        "hidden_act": ("silu",),
        "attention_bias": (False,),
        "mlp_bias": (False,),
    }

    def __post_init__(self) -> None:
        kind = self.rope_parameters.get("rope_type")
        if kind not in ROPE:
            raise ValueError(f"rope_type: found {kind!r}; expected {' or '.join(map(repr, ROPE))}")
        if (share := self.rope_parameters.get("partial_rotary_factor", 1.0)) != 1.0:
            raise ValueError(f"partial_rotary_factor: found {share}; only 1.0 is supported")

    @classmethod
    def from_hf(cls, config: Any) -> Self:
        """As for other architectures; raises ValueError also for RoPE in an older format."""
        if not hasattr(config, "rope_parameters"):
            raise ValueError("rope_parameters: found none; expected the format of transformers 5")
        return super().from_hf(config)


class RMSNorm(nn.Module):
    """Root mean square normalisation (Zhang and Sennrich 2019, equation 4).

        x / √(mean(x²) + ε) · weight

    Computed in float32, whatever the type of the weights.
    """

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, hidden: Tensor) -> Tensor:  # (..., C)
        """Scale each vector to a root mean square of 1, then by the weight."""
        wide = hidden.float()
        normal = wide * torch.rsqrt(wide.pow(2).mean(dim=-1, keepdim=True) + self.eps)
        return self.weight * normal.to(hidden.dtype)


def frequencies(config: Config) -> Tensor:
    """RoPE frequencies: the angle of each pair of a head per token, in radians: (D / 2,).

    Pair i turns by theta^(-2i / D) (Su et al. 2021, section 3.2.2). `llama3` scales this to longer
    texts (Llama 3.1; Grattafiori et al. 2024): low frequencies are divided by `factor`, high ones
    are kept, those between are interpolated.
    """
    rope = config.rope_parameters
    pairs = torch.arange(0, config.head_dim, 2).float() / config.head_dim
    frequency: Tensor = 1 / rope["rope_theta"] ** pairs
    if rope["rope_type"] == "default":
        return frequency
    waves = rope["original_max_position_embeddings"] / (2 * math.pi / frequency)  # in one text
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    share = ((waves - low) / (high - low)).clamp(0, 1)
    return (1 - share) * frequency / rope["factor"] + share * frequency


def cosines_sines(
    frequency: Tensor, position_ids: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """RoPE's cosines and sines (B, 1, T, D / 2) of `frequencies` (D / 2,) at positions (B, T)."""
    angles = position_ids[:, None, :, None].float() * frequency.to(position_ids.device)
    return angles.cos().to(dtype), angles.sin().to(dtype)


def rotate(vectors: Tensor, cos: Tensor, sin: Tensor) -> Tensor:  # (B, H, T, D), (B, 1, T, D / 2)
    """Rotate every pair of a head by its angle (Su et al. 2021, equation 34): (B, H, T, D).

    A pair is entry i and entry i + D / 2, as in Hugging Face's checkpoints; the paper pairs
    neighbours.
    """
    first, second = vectors.chunk(2, dim=-1)  # (B, H, T, D / 2)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


class _Attention(nn.Module):
    """Grouped-query attention (Ainslie et al. 2023) with rotary positions; caches rotated keys."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width, size = config.hidden_size, config.head_dim
        self.size = size
        self.dropout = config.attention_dropout
        heads, groups = config.num_attention_heads, config.num_key_value_heads
        self.q_proj = nn.Linear(width, heads * size, bias=False)
        self.k_proj = nn.Linear(width, groups * size, bias=False)
        self.v_proj = nn.Linear(width, groups * size, bias=False)
        self.o_proj = nn.Linear(heads * size, width, bias=False)

    def forward(
        self,
        hidden: Tensor,  # (B, T, C)
        rotation: tuple[Tensor, Tensor],  # cosines and sines
        mask: Tensor | None,  # adds causality and padding; None: all tokens attend to each other
        past: KeysValues | None,  # of the cached tokens, (B, G, S - T, D)
    ) -> tuple[Tensor, KeysValues]:  # (B, T, C), and `past` with the new tokens
        query = rotate(masks.split_heads(self.q_proj(hidden), self.size), *rotation)  # (B, H, T, D)
        key = rotate(masks.split_heads(self.k_proj(hidden), self.size), *rotation)  # (B, G, T, D)
        value = masks.split_heads(self.v_proj(hidden), self.size)  # (B, G, T, D)
        key, value = past = extend(past, key, value)  # (B, G, S, D)
        dropout = self.dropout if self.training else 0.0
        attended = F.scaled_dot_product_attention(  # H / G neighbouring query heads share a key
            query, key, value, mask, dropout, enable_gqa=query.shape[1] != key.shape[1]
        )  # (B, H, T, D)
        return self.o_proj(attended.transpose(1, 2).flatten(2)), past  # (B, T, C)


class _MLP(nn.Module):
    """SwiGLU (Shazeer 2020, equation 6): a linear layer gated by another."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width, inner = config.hidden_size, config.intermediate_size
        self.gate_proj = nn.Linear(width, inner, bias=False)
        self.up_proj = nn.Linear(width, inner, bias=False)
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:  # (B, T, C)
        inner = F.silu(self.gate_proj(hidden)) * self.up_proj(hidden)  # (B, T, I)
        return self.down_proj(inner)  # (B, T, C)


class _Layer(nn.Module):
    """Attention, then the MLP, each with a norm before it and a residual connection."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.self_attn = _Attention(config)
        self.mlp = _MLP(config)
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)

    def forward(
        self,
        hidden: Tensor,  # (B, T, C)
        rotation: tuple[Tensor, Tensor],  # cosines and sines
        mask: Tensor | None,  # as in `_Attention`
        past: KeysValues | None,
    ) -> tuple[Tensor, KeysValues]:  # (B, T, C), and `past` with the new tokens
        attended, past = self.self_attn(self.input_layernorm(hidden), rotation, mask, past)
        hidden = hidden + attended
        hidden = hidden + self.mlp(self.post_attention_layernorm(hidden))
        return hidden, past


class LlamaModel(nn.Module):
    """The decoder without its head."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size, config.pad_token_id)
        self.layers = nn.ModuleList(_Layer(config) for _ in range(config.num_hidden_layers))
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        # Not a buffer: in half precision, the angles of far positions would be wrong.
        self.frequencies = frequencies(config)
        self.is_causal = config.is_causal

    def forward(
        self,
        input_ids: Tensor | None = None,  # (B, T)
        *,
        attention_mask: Tensor | None = None,  # (B, S), 1 = token, 0 = padding; None: no padding
        position_ids: Tensor | None = None,  # (B, T); None: S - T, S - T + 1, ...
        past_key_values: Cache | None = None,
        inputs_embeds: Tensor | None = None,  # (B, T, C), instead of `input_ids`
        use_cache: bool = True,
    ) -> DecoderOutput:
        """Hidden states of T tokens after the cached ones; the cache unless `use_cache` is off."""
        hidden = self.embed_tokens(input_ids) if inputs_embeds is None else inputs_embeds
        length, device = hidden.shape[1], hidden.device
        cached = past_key_values[0][0].shape[2] if past_key_values else 0
        total = cached + length
        if position_ids is None:
            position_ids = torch.arange(cached, total, device=device)[None]
        rotation = cosines_sines(self.frequencies, position_ids, hidden.dtype)
        mask = masks.decoder(attention_mask, length, total, device, is_causal=self.is_causal)
        cache = []
        for index, layer in enumerate(self.layers):
            past = past_key_values[index] if past_key_values else None
            hidden, past = layer(hidden, rotation, mask, past)
            cache.append(past)
        return DecoderOutput(self.norm(hidden), tuple(cache) if use_cache else None)


class LlamaForCausalLM(CausalLM):
    """The decoder with a head, whose weights are those of the word embeddings if tied."""

    base_model_prefix = "model"

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.model = LlamaModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        if config.tie_word_embeddings:
            self.lm_head.weight = self.model.embed_tokens.weight
