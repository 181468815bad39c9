"""The simulation applies the rules of `wxb compare`."""

import numpy as np
import pytest

from tests.benchmarks.script import script

reproduction = script("reproduction")
RECORDS, TRAININGS = reproduction.RULES


def study(deviation, reach=0.02):
    shape = (1, 4)
    return reproduction.Study(np.full(shape, 0.5), np.full(shape, deviation), np.full(shape, reach))


@pytest.mark.parametrize("deviation", [0.003, 0.03])
def test_the_rule_of_seeds_accepts_about_95_of_100_correct_reruns(deviation):
    shares = reproduction.simulate(study(deviation), 3, TRAININGS, times=300, drop=0.5)
    assert 0.92 <= shares.studies <= shares.scores <= 1
    assert shares.detected == 1


def test_intervals_of_records_ignore_variation_between_trainings():
    small, large = (
        reproduction.simulate(study(deviation), 1, RECORDS, times=200, drop=0.1).studies
        for deviation in (0.003, 0.03)
    )
    assert small == 1
    assert large < 0.2
