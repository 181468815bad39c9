"""The loss of a training as it is drawn: each point the mean of as many steps."""

from __future__ import annotations

from itertools import pairwise

from wxb.reporting.charts.figures import Curve


def evened(points: Curve) -> Curve:
    """A loss logged every so many steps, without the points that were logged out of turn.

    A value is the mean over the steps since the one before. A checkpoint has the loss logged with
    it, which at the end of an epoch is often a mean of few batches, and of those that differ most:
    the smallest, or the shortest records. Such a point is joined with the next, and the last one
    with that before it, each with the weight of its steps. A loss without a common stride is given
    back as it is.
    """
    steps = [0, *(step for step, _ in points)]
    stride = max((after - before for before, after in pairwise(steps)), default=0)
    if not stride or not {*range(stride, steps[-1] + 1, stride)} <= {*steps}:
        return points
    even: list[tuple[int, float]] = []
    total, since = 0.0, 0  # of the values since the last even point, by their steps; its step
    for before, (step, value) in zip(steps, points, strict=False):
        total += (step - before) * value
        if step % stride == 0:
            even.append((step, total / stride))
            total, since = 0.0, step
    rest = steps[-1] - since
    if rest:
        _, last = even.pop()
        even.append((steps[-1], (stride * last + total) / (stride + rest)))
    return even
