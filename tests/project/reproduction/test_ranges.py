"""Ranges of reruns: the formula, and how often valid reruns are inside."""

import math
from random import Random
from statistics import fmean, stdev

import pytest
from scipy.stats import t

from wxb.project.reproduction.ranges import Range, ranges

RUNS = {"f1": {"one": [0.5, 0.52, 0.51], "two": [0.3, 0.33, 0.36]}}


def test_one_score_has_the_interval_of_students_t():
    (limits,) = ranges({"f1": {"one": [0.5, 0.52, 0.51]}})["f1"].values()
    reach = 4.302653 * 0.01 * math.sqrt(1 + 1 / 3)  # qt(0.975, 2)
    assert limits == (pytest.approx(0.51 - reach), pytest.approx(0.51 + reach))


def test_the_wider_interval_is_used():
    one, two = ranges(RUNS)["f1"].values()
    pooled = math.sqrt((0.01**2 + 0.03**2) / 2)
    both, alone = t.ppf((1 + math.sqrt(0.95)) / 2, 4), t.ppf(0.975, 2)
    assert one.high - 0.51 == pytest.approx(both * pooled * math.sqrt(4 / 3))
    assert two.high - 0.33 == pytest.approx(alone * 0.03 * math.sqrt(4 / 3))


def test_a_mean_of_several_reruns_varies_less():
    (several,), (single,) = (ranges({"f1": {"one": [0.1, 0.2]}}, k)["f1"].values() for k in (4, 1))
    assert single.low < several.low < several.high < single.high


def test_ends_are_inside_and_absent_values_are_not():
    assert 0.5 in Range(0.5, 0.6)
    assert 0.6 in Range(0.5, 0.6)
    assert 0.61 not in Range(0.5, 0.6)
    assert None not in Range(0.5, 0.6)
    assert math.nan not in Range(0.5, 0.6)


def test_about_95_of_100_valid_reruns_are_inside():
    random, inside, times = Random(1), 0, 1000
    deviations = [0.006, 0.003, 0.018, 0.013, 0.005, 0.014, 0.031]  # of the demo's experiments
    for _ in range(times):
        runs = {str(d): [random.gauss(0.5, d) for _ in range(3)] for d in deviations}
        bounds = ranges({"f1": runs})["f1"]
        inside += all(random.gauss(0.5, d) in bounds[str(d)] for d in deviations)
    assert 0.92 <= inside / times <= 0.98


def test_experiments_that_do_not_vary_have_no_range_and_narrow_no_other():
    constant = {"crf": [0.901759] * 3, "mentions": [0.4] * 3}
    both = ranges({"f1": {**RUNS["f1"], **constant}})["f1"]
    assert {name: both[name] for name in RUNS["f1"]} == ranges(RUNS)["f1"]
    assert [x in both["crf"] for x in (0.901758, 0.901759, 0.90176)] == [True] * 3
    assert [x in both["crf"] for x in (0.901757, 0.901761, 0.838)] == [False] * 3
    assert ranges({"f1": constant})["f1"].keys() == constant.keys()


def test_the_mean_of_all_seeds_is_the_centre():
    for name, limits in ranges(RUNS)["f1"].items():
        assert fmean(limits) == pytest.approx(fmean(RUNS["f1"][name]))
        assert limits.high - limits.low > 2 * stdev(RUNS["f1"][name])
