"""The simulation draws what it says, and judges as `wxb compare` does."""

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.benchmarks.script import script
from tests.copied import ROOT

reproduction = script("reproduction")
RECORDS, TRAININGS = reproduction.RULES


def study(deviation, reach=0.02):
    shape = (1, 4)
    return reproduction.Study(np.full(shape, 0.5), np.full(shape, deviation), np.full(shape, reach))


@pytest.mark.parametrize("deviation", [0.003, 0.03])
def test_seeds_call_about_95_of_100_honest_reruns_reproduced(deviation):
    shares = reproduction.simulate(study(deviation), 3, TRAININGS, times=300, drop=0.5)
    assert 0.92 <= shares.studies <= shares.scores <= 1
    assert shares.found == 1


def test_intervals_of_records_do_not_follow_trainings():
    calm, wild = (
        reproduction.simulate(study(deviation), 1, RECORDS, times=200, drop=0.1).studies
        for deviation in (0.003, 0.03)
    )
    assert calm == 1
    assert wild < 0.2


def test_the_command_prints_a_row_for_each_study_and_rule(monkeypatch):
    monkeypatch.chdir(ROOT)
    done = CliRunner().invoke(reproduction.app, ["--times", "2"])
    assert done.exit_code == 0, done.output
    assert done.output.count("trainings vary a third") == 3
