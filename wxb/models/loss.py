"""The loss of models that write tokens (Vaswani et al. 2017, section 5.4)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812


def smoothed_loss(logits: Tensor, labels: Tensor, *, smoothing: float, ignored: int) -> Tensor:
    """Cross-entropy of logits (..., V) with labels (...), each a little unsure.

    The label has the probability 1 - smoothing, and all tokens share the rest alike (Szegedy et al.
    2016, section 7). The mean is over the labels that are not `ignored`, and 0 if there is none.
    """
    # In half precision the probabilities would be rounded.
    exact = torch.promote_types(logits.dtype, torch.float)
    total = F.cross_entropy(
        logits.flatten(0, -2).to(exact),
        labels.flatten(),
        ignore_index=ignored,
        label_smoothing=smoothing,
        reduction="sum",
    )
    return total / (labels != ignored).sum().clamp(min=1)
