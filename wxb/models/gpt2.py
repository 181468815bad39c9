"""GPT-2 (Radford et al. 2019), a causal decoder.

Modules are named as in Hugging Face's checkpoints, which load without conversion. Shapes: B texts
of T new tokens after S - T cached ones, width C, H heads of D = C / H, vocabulary V.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from wxb.models import configuration, masks
from wxb.models.attention import Dropout
from wxb.models.configuration import ACTIVATIONS
from wxb.models.decoding import Cache, CausalLM, DecoderOutput, KeysValues, extend


@dataclass(frozen=True)
class Config(configuration.Config):
    """The shape of a GPT-2; names and values as in Hugging Face's `GPT2Config`."""

    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    n_inner: int | None = None  # None: 4 · n_embd
    activation_function: str = "gelu_new"
    resid_pdrop: float = 0.1
    embd_pdrop: float = 0.1
    attn_pdrop: float = 0.1
    layer_norm_epsilon: float = 1e-5
    initializer_range: float = 0.02

    supported: ClassVar = {
        "activation_function": ("gelu_new", *ACTIVATIONS),
        "scale_attn_weights": (True,),
        "scale_attn_by_inverse_layer_idx": (False,),
        "reorder_and_upcast_attn": (False,),
        "add_cross_attention": (False,),
        "tie_word_embeddings": (True,),
    }


class _Conv1D(nn.Module):
    """A linear layer with the weight layout of OpenAI's checkpoints: (inputs, outputs)."""

    def __init__(self, inputs: int, outputs: int, std: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        nn.init.normal_(self.weight, std=std)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, hidden: Tensor) -> Tensor:  # (..., inputs)
        return F.linear(hidden, self.weight.T, self.bias)  # (..., outputs)


def _residual_std(config: Config) -> float:
    """Initial standard deviation of the weights before residual sums, two a layer (section 2.3)."""
    return config.initializer_range / math.sqrt(2 * config.n_layer)


class _Attention(nn.Module):
    """Multi-head attention, which only `mask` makes causal."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config.n_embd
        self.size = width // config.n_head
        self.dropout = config.attn_pdrop
        self.c_attn = _Conv1D(width, 3 * width, config.initializer_range)
        self.c_proj = _Conv1D(width, width, _residual_std(config))
        self.resid_dropout = Dropout(config.resid_pdrop)

    def forward(
        self, hidden: Tensor, mask: Tensor | None, past: KeysValues | None
    ) -> tuple[Tensor, KeysValues]:  # (B, T, C) and `past` with new tokens; mask: `masks.decoder`
        query, key, value = (
            masks.split_heads(part, self.size)  # (B, H, T, D)
            for part in self.c_attn(hidden).chunk(3, dim=-1)  # (B, T, C)
        )
        key, value = past = extend(past, key, value)  # (B, H, S, D)
        dropout = self.dropout if self.training else 0.0
        attended = F.scaled_dot_product_attention(query, key, value, mask, dropout)  # (B, H, T, D)
        attended = attended.transpose(1, 2).flatten(2)  # (B, T, C)
        return self.resid_dropout(self.c_proj(attended)), past


class _MLP(nn.Module):
    """Two linear layers, applied to each token separately."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        inner = config.n_inner or 4 * config.n_embd
        self.c_fc = _Conv1D(config.n_embd, inner, config.initializer_range)
        self.c_proj = _Conv1D(inner, config.n_embd, _residual_std(config))
        self.activation = ACTIVATIONS[config.activation_function]
        self.dropout = Dropout(config.resid_pdrop)

    def forward(self, hidden: Tensor) -> Tensor:  # (B, T, C)
        inner = self.activation(self.c_fc(hidden))  # (B, T, 4C)
        return self.dropout(self.c_proj(inner))  # (B, T, C)


class _Block(nn.Module):
    """Attention, then the MLP, each with a norm before it and a residual connection."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self.attn = _Attention(config)
        self.ln_2 = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self.mlp = _MLP(config)

    def forward(
        self, hidden: Tensor, mask: Tensor | None, past: KeysValues | None
    ) -> tuple[Tensor, KeysValues]:  # (B, T, C), as `hidden`, and `past` with the new tokens
        attended, past = self.attn(self.ln_1(hidden), mask, past)
        hidden = hidden + attended
        hidden = hidden + self.mlp(self.ln_2(hidden))
        return hidden, past


class GPT2Model(nn.Module):
    """The decoder without its head."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.n_positions, config.n_embd)
        for table in (self.wte, self.wpe):
            nn.init.normal_(table.weight, std=config.initializer_range)
        self.drop = Dropout(config.embd_pdrop)
        self.h = nn.ModuleList(_Block(config) for _ in range(config.n_layer))
        self.ln_f = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)

    def forward(
        self,
        input_ids: Tensor,  # (B, T)
        *,
        attention_mask: Tensor | None = None,  # (B, S), 1 = token, 0 = padding; None: no padding
        position_ids: Tensor | None = None,  # (B, T); None: S - T, S - T + 1, ...
        past_key_values: Cache | None = None,
        use_cache: bool = True,
    ) -> DecoderOutput:
        """Hidden states of T tokens after the cached ones, and the cache unless `use_cache` is off.

        Raises ValueError for a position that the model does not have.
        """
        cached = past_key_values[0][0].shape[2] if past_key_values else 0
        length, device = input_ids.shape[1], input_ids.device
        if position_ids is None:
            position_ids = torch.arange(cached, cached + length, device=device)
        if (last := int(position_ids.max())) >= self.config.n_positions:
            raise ValueError(f"found position {last}; the model has {self.config.n_positions}")
        mask = masks.decoder(attention_mask, length, cached + length, device)
        hidden = self.drop(self.wte(input_ids) + self.wpe(position_ids))  # (B, T, C)
        cache = []
        for index, block in enumerate(self.h):
            past = past_key_values[index] if past_key_values else None
            hidden, past = block(hidden, mask, past)
            cache.append(past)
        return DecoderOutput(self.ln_f(hidden), tuple(cache) if use_cache else None)


class GPT2LMHeadModel(CausalLM):
    """The decoder with a head that shares the weights of the word embeddings."""

    base_model_prefix = "transformer"

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.transformer = GPT2Model(config)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.lm_head.weight = self.transformer.wte.weight
