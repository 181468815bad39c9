"""Scores of any task, and their uncertainty: all from statistics that add up over records."""

from typing import NamedTuple

LEVEL = 0.95  # of every interval
TEST = "test"  # the test set that every corpus has; others have names of their own
DIGITS = 6  # of a published score


class Metric(NamedTuple):
    """A score that tables show with its interval."""

    key: str  # in JSON
    title: str  # for people
    lower_is_better: bool = False
    scale: float | None = 1.0  # the largest value that it can have; None where there is none
    decimals: int = 3
