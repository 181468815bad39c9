"""Metrics of all tasks with confidence intervals, from statistics that sum over records."""

from typing import NamedTuple

LEVEL = 0.95  # of every interval
TEST = "test"  # the test set of every corpus; further test sets have other names
DIGITS = 6  # after the point, of a reported score


class Metric(NamedTuple):
    """A metric that tables show with its interval."""

    key: str  # in JSON
    title: str  # in tables
    lower_is_better: bool = False
    low: float = 0.0  # the least possible value
    high: float | None = 1.0  # the largest possible value; None: unbounded
    decimals: int = 3
    chance: float | None = None  # the score of a constant prediction, such as a kappa of 0
    fallback_bound: float = 1.0  # if `high` is None: as many errors as words
    denominator: str = ""  # the sum that it divides by, which a group needs to count; empty: any
