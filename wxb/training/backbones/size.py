"""How large a model is."""

from __future__ import annotations

from typing import Any

from torch import nn


def parameters(model: Any, *, trainable: bool = False) -> int:
    """How many numbers a model holds, or how many of them it learns; shared ones count once.

    Rows of new tokens that learn beside a frozen table stand for rows of that table.
    """
    return sum(
        _size(p)
        for name, p in model.named_parameters()
        if (p.requires_grad if trainable else "trainable_tokens_delta" not in name)
    )


def _size(parameter: nn.Parameter) -> int:
    """The numbers that a parameter stands for; one in 4 bits packs two into a byte."""
    packed = getattr(parameter, "quant_state", None)
    return parameter.numel() if packed is None else packed.shape.numel()
