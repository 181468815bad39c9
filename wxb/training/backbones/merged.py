"""LoRA adapters merged into the weights of their backbone, without peft."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from wxb.core.pretrained import Adapter

TABLES = ("embed_tokens", "wte", "lm_head")  # modules with a row for each token
PREFIX, ROWS = "base_model.model.", ".token_adapter.trainable_tokens_delta"


def merge(
    weights: Mapping[str, Tensor], adapter: Mapping[str, Tensor], settings: Adapter, tokens: int = 0
) -> dict[str, Tensor]:
    """Weights of a backbone with an adapter (Hu et al. 2021): W + alpha / r * B A, in float32.

    `adapter` are the tensors of peft's file. Its rows of trained tokens replace those of `weights`,
    whose tables of tokens may have fewer than `tokens` rows. Raises LookupError or RuntimeError for
    tensors that do not fit, and ValueError if the adapter lacks a target module or a row.
    """
    matrices = {name.removeprefix(PREFIX): tensor.float() for name, tensor in adapter.items()}
    merged, adapted = {name: weight.float() for name, weight in weights.items()}, set()
    tables = [name for name in weights if name.split(".")[-2] in TABLES]
    for name in tables:
        missing = max(0, tokens - len(merged[name]))
        merged[name] = F.pad(merged[name], (0, 0, 0, missing), value=torch.nan)
    for name, tensor in matrices.items():
        module, _, kind = name.rpartition(".lora_A.")
        if module:
            delta = matrices[f"{module}.lora_B.{kind}"] @ tensor  # (outputs, inputs)
            delta = delta.T if settings.fan_in_fan_out else delta
            weight = f"{module}.{kind}"
            merged[weight] = merged[weight] + settings.lora_alpha / settings.r * delta
            adapted.add(weight)
        elif name.endswith(ROWS):
            weight = f"{name.removesuffix(ROWS)}.weight"
            merged[weight] = merged[weight].index_copy(0, _rows(settings, weight), tensor)
        elif name.replace(".lora_B.", ".lora_A.") not in matrices:
            raise KeyError(name)
    targets = tuple(f".{target}.weight" for target in settings.target_modules)
    if adapted != {weight for weight in weights if weight.endswith(targets)}:
        raise ValueError("target_modules: expected those of the matrices")
    if any(merged[name].isnan().any() for name in tables):
        raise ValueError("trainable_token_indices: expected all tokens that the backbone lacks")
    return merged


def _rows(settings: Adapter, weight: str) -> Tensor:
    """The rows (N,) of a table that an adapter has: of the input embeddings, or by module name."""
    rows = settings.trainable_token_indices
    return torch.tensor(rows[weight.split(".")[-2]] if isinstance(rows, dict) else rows)
