"""The number of parameters of a model."""

from __future__ import annotations

from typing import Any

from torch import nn


def parameter_count(model: Any, *, trainable: bool = False) -> int:
    """Number of parameters; only trainable ones if `trainable`. Shared ones count once.

    Trainable rows of new tokens replace rows of a frozen table, and count only as trainable.
    """
    return sum(
        _size(p)
        for name, p in model.named_parameters()
        if (p.requires_grad if trainable else "trainable_tokens_delta" not in name)
    )


def _size(parameter: nn.Parameter) -> int:
    """Number of values of a parameter; in 4 bits, a byte holds two."""
    packed = getattr(parameter, "quant_state", None)
    return parameter.numel() if packed is None else packed.shape.numel()
