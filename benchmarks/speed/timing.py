"""Time the project and a peer in alternation, and format the ratios."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
from rich.table import Table

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


def matmul_rate(turns: int = 9, device: str = "cpu") -> float:
    """Floating-point operations a second of a product of square matrices, the median of turns.

    The matrices are of bfloat16 on a GPU, and of float32 elsewhere.
    """
    size, kind = (1024, torch.float32) if device == "cpu" else (8192, torch.bfloat16)
    matrix = torch.rand(size, size, dtype=kind, device=device)

    def product() -> None:
        torch.matmul(matrix, matrix)
        if device != "cpu":
            torch.cuda.synchronize()

    product()
    return float(2 * size**3 / statistics.median(seconds(product) for _ in range(turns)))


def table(comparisons: Iterable[Comparison], title: str | None = None) -> Table:
    """A row for each comparison: median milliseconds, and the median and range of the ratios."""
    result = Table("work", "ours, ms", "peer", "peer, ms", "times as fast", title=title)
    for row in comparisons:
        ours, theirs = (
            f"{1000 * statistics.median(s):,.1f}" for s in zip(*row.seconds, strict=True)
        )
        result.add_row(row.what, ours, row.peer, theirs, spread(row.ratios))
    return result


def spread(values: list[float], digits: int = 2) -> str:
    """The median of values with their range, such as `1.31 (1.25 to 1.40)`."""
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:,.{digits}f} ({low:,.{digits}f} to {high:,.{digits}f})"
