"""The perceptron: both rules converge as their theorems say."""

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from wxb.models.perceptron import train_by_descent, train_by_steps

EPSILON = np.finfo(float).eps


@given(
    seed=st.integers(0, 10_000),
    points=st.integers(2, 60),
    dimensions=st.integers(1, 6),
    margin=st.sampled_from([0.05, 0.1, 0.2]),
    rate=st.sampled_from([0.01, 1.0, 7.0]),
)
def test_steps_converge_within_novikoffs_bound(seed, points, dimensions, margin, rate):
    rng = np.random.default_rng(seed)
    normal = rng.normal(size=dimensions)
    normal /= np.linalg.norm(normal)
    offset = rng.uniform(-0.2, 0.2)
    # Points in a unit ball, and their classes by a random plane that is at least a margin away.
    x = rng.uniform(-1, 1, size=(points, dimensions)) / np.sqrt(dimensions)
    x = x[np.abs(x @ normal + offset) > margin]
    y = (x @ normal + offset > 0).astype(np.int64)
    assume(len(x) > 0)
    unit, mistakes = train_by_steps(x, y, epochs=10_000, rate=rate)
    assert unit.predict(x).tolist() == y.tolist()
    assert mistakes[-1] == 0
    assert all(mistakes[:-1])
    # The bias is one more weight, on an input that is always 1. A distance is a sum of at most 7
    # products below 1, and at least 0.05: 7 u / 0.05 of it is rounding, and twice that of a square.
    radius = np.sqrt((x**2).sum(axis=1).max() + 1)
    margin_of_points = np.abs(x @ normal + offset).min() / np.sqrt(1 + offset**2)
    assert sum(mistakes) <= (radius / margin_of_points) ** 2 * (1 + 280 * EPSILON)


@given(seed=st.integers(0, 10_000), points=st.integers(4, 40), dimensions=st.integers(1, 4))
def test_descent_converges_to_least_squares(seed, points, dimensions):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(points, dimensions))
    y = rng.integers(0, 2, size=points)
    inputs = np.column_stack([x, np.ones(points)])
    # Slow if one direction hardly varies: the steepest one limits the rate.
    steepness = np.linalg.eigvalsh(2 * inputs.T @ inputs / points)
    condition = steepness[-1] / max(steepness[0], 1e-300)
    assume(condition < 80)
    epochs = int(20 * condition) + 1
    unit, errors = train_by_descent(x, y, epochs=epochs, rate=1 / steepness[-1])
    best, *_ = np.linalg.lstsq(inputs, 2.0 * y - 1, rcond=None)
    # Each epoch shrinks the distance to the solution, at first its norm, by 1 - 1 / condition. So
    # exp(-20) of it is left, beside which the rounding of float64 is nothing.
    limit = np.exp(-20) * max(1, np.linalg.norm(best))
    assert np.linalg.norm(best - [*unit.w, unit.b]) <= limit
    # The weights stay within twice the solution, so residuals within `size`. A mean of the squares
    # of n of them, sums of d + 2 terms, errs by at most (n + 2 d + 4) eps of the largest.
    size = 1 + 2 * np.linalg.norm(best) * np.linalg.norm(inputs, axis=1).max()
    assert (np.diff(errors) <= (points + 2 * dimensions + 4) * EPSILON * size**2).all()
