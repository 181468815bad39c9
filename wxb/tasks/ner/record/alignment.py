"""Alignment statuses: whether the training targets of a model reproduce the gold spans."""

from __future__ import annotations

from enum import IntEnum, auto

import numpy as np
from numpy.typing import NDArray


class Status(IntEnum):
    """The alignment status of one gold span."""

    KEPT = auto()
    """The targets reproduce the span."""
    REPAIRED = auto()
    """The targets give other offsets: a token crosses an edge, or the mention occurs twice."""
    SPLIT = auto()
    """No window holds the whole span; each window has a part of it as its target."""
    LOST = auto()
    """No token covers it, another span has its first token, or training lacks its type."""


def count_statuses(statuses: NDArray[np.integer]) -> dict[str, int]:
    """The number of gold spans with each status, by its name, and of all, as `gold`."""
    counts = {status.name.lower(): int((statuses == status).sum()) for status in Status}
    return {"gold": len(statuses), **counts}
