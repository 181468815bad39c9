"""What became of gold spans when they were turned into what a model is taught."""

from __future__ import annotations

from enum import IntEnum, auto

import numpy as np
from numpy.typing import NDArray


class Status(IntEnum):
    """The alignment status of one gold span."""

    KEPT = auto()
    """What is taught gives back the very span."""
    REPAIRED = auto()
    """What is taught gives another: a token reaches over an edge, or the mention stands twice."""
    SPLIT = auto()
    """No window holds it whole: each window that reads of it is taught its part."""
    LOST = auto()
    """No token covers it, or another span already claimed its first token, or its type is new."""


def account(statuses: NDArray[np.integer]) -> dict[str, int]:
    """How many gold spans have each status; the counts add up to `gold`."""
    counts = {status.name.lower(): int((statuses == status).sum()) for status in Status}
    return {"gold": len(statuses), **counts}
