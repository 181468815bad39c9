"""Checkpoints leave no trace in a smoothed loss."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wxb.reporting.charts.losses import smoothed


def log(losses, stride, checkpoints):
    """The log of step losses: means since the previous point, at strides and checkpoints."""
    steps = sorted({*range(stride, len(losses) + 1, stride), *checkpoints, len(losses)})
    return [
        (step, sum(losses[before:step]) / (step - before))
        for before, step in zip([0, *steps], steps, strict=False)
    ]


@given(st.lists(st.floats(0, 9), min_size=4, max_size=60), st.integers(1, 4), st.data())
def test_checkpoints_leave_no_trace(losses, stride, data):
    whole = len(losses) - len(losses) % stride
    between = data.draw(st.sets(st.integers(stride, len(losses))))
    points = smoothed(log(losses, stride, between))
    plain = log(losses[:whole], stride, ())
    assert [step for step, _ in points[:-1]] == [step for step, _ in plain[:-1]]
    assert [value for _, value in points[:-1]] == pytest.approx([value for _, value in plain[:-1]])
    tail = losses[whole - stride :]
    assert points[-1] == (len(losses), pytest.approx(sum(tail) / len(tail)))


def test_a_spike_of_few_steps_at_the_end_of_an_epoch_is_smoothed():
    assert smoothed([(10, 2.0), (20, 1.5), (21, 9.0), (30, 1.0), (32, 0.0)]) == [
        (10, 2.0),
        (20, 1.5),
        (32, pytest.approx((9.0 + 9 * 1.0) / 12)),
    ]


@pytest.mark.parametrize(
    "points",
    [[], [(0, 1.0)], [(10, 2.5)], [(10, 2.5), (20, 1.25)], [(3, 2.0), (9, 1.0), (20, 0.5)]],
)
def test_regular_losses_and_losses_without_a_stride_are_unchanged(points):
    assert smoothed(points) == points
