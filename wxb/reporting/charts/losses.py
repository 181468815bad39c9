"""Smoothing of training losses for charts."""

from __future__ import annotations

from itertools import pairwise

from wxb.reporting.charts.figures import Curve


def smoothed(points: Curve) -> Curve:
    """A logged loss at regular steps, each value the mean since the previous one.

    The Trainer also logs at checkpoints, often the mean of a few unusual batches at the end of an
    epoch. Such a point is merged with the next, and the last one with that before it, weighted by
    their steps. Losses without a common stride are returned unchanged.
    """
    steps = [0, *(step for step, _ in points)]
    stride = max((after - before for before, after in pairwise(steps)), default=0)
    if not stride or not {*range(stride, steps[-1] + 1, stride)} <= {*steps}:
        return points
    regular: list[tuple[int, float]] = []
    total, last_step = 0.0, 0  # sum of step losses since the last regular point, and its step
    for before, (step, value) in zip(steps, points, strict=False):
        total += (step - before) * value
        if step % stride == 0:
            regular.append((step, total / stride))
            total, last_step = 0.0, step
    rest = steps[-1] - last_step
    if rest:
        _, value = regular.pop()
        regular.append((steps[-1], (stride * value + total) / (stride + rest)))
    return regular
