"""Time the project and a peer in alternation."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import torch

Work = Callable[[], object]


class Comparison(NamedTuple):
    """Seconds of the project and of a peer for the same work."""

    what: str
    peer: str
    seconds: list[tuple[float, float]]  # ours and the peer's, one pair per turn
    goal: float | None = None  # how many times as fast as the peer we want to be

    @property
    def ratios(self) -> list[float]:
        """How many times as fast as the peer the project was in each turn."""
        return [theirs / ours for ours, theirs in self.seconds]


def compare(
    what: str, ours: Work, peer: str, theirs: Work, *, turns: int, goal: float | None = None
) -> Comparison:
    """Time both sides in each turn, after a warm-up; the side that comes first alternates."""
    sides = (ours, theirs)
    for work in sides:
        work()
    pairs = []
    for turn in range(turns):
        order = (0, 1) if turn % 2 else (1, 0)
        taken = {side: seconds(sides[side]) for side in order}
        pairs.append((taken[0], taken[1]))
    return Comparison(what, peer, pairs, goal)


def seconds(work: Work) -> float:
    """Wall time of a call."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def matmul_rate(turns: int = 9) -> float:
    """Floating-point operations a second of a product of square matrices, the median of turns."""
    size = 1024
    matrix = torch.rand(size, size)
    times = [seconds(lambda: torch.matmul(matrix, matrix)) for _ in range(1 + turns)][1:]
    return float(2 * size**3 / statistics.median(times))
