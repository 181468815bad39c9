"""The paired tests in numbers and in words."""

import re
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reporting.conftest import BLEU, CER, comparison
from wxb.metrics import Metric
from wxb.metrics.intervals import Groups, paired_difference
from wxb.reporting.charts.pairs import (
    ALPHA,
    claim,
    corrected_pairs,
    groups_warning,
    holm,
    leaders,
    matrix,
    pairs_by_names,
    tiers,
    verdicts,
)

SEVEN = dict(zip("abcdefg", (0.90, 0.895, 0.7, 0.5, 0.3, 0.295, 0.1), strict=True))
p_values = st.lists(st.floats(0, 1), max_size=30)


def test_holm_as_r_computes_it():
    # p.adjust(c(0.04, 0.01, 0.03, 0.005, 0.5), "holm")
    assert holm([0.04, 0.01, 0.03, 0.005, 0.5]) == pytest.approx([0.09, 0.04, 0.09, 0.025, 0.5])


@given(p_values)
def test_holm_lies_between_the_raw_values_and_bonferroni(values):
    for raw, corrected in zip(values, holm(values), strict=True):
        assert raw <= corrected <= min(1, len(values) * raw)


@given(p_values)
def test_holm_keeps_the_order(values):
    ordered = sorted(zip(values, holm(values), strict=True))
    assert [p for _, p in ordered] == sorted(p for _, p in ordered)


@given(st.floats(0, 1))
def test_holm_of_one_test_corrects_nothing(value):
    assert holm([value]) == [value]


def test_pairs_are_leads_of_the_winner(compared):
    (pair,) = corrected_pairs(compared({"loser": 0.25, "winner": 0.5}))
    assert (pair.a, pair.b, pair.value) == ("winner", "loser", 0.25)
    assert pair.low == pytest.approx(0.24)
    assert pair.high == pytest.approx(0.26)
    assert pair.swapped().swapped() == pair


def test_beyond_noise_needs_the_interval_and_the_corrected_p(compared):
    (pair,) = corrected_pairs(compared({"a": 0.5, "b": 0.25}))
    assert pair.beyond_noise
    assert pair.swapped().beyond_noise
    assert not pair._replace(low=0.0).beyond_noise
    assert not pair._replace(corrected=ALPHA + 0.001).beyond_noise


def difference(value, low=-1.0, high=1.0, p_value=0.01):
    return {"value": value, "low": low, "high": high, "p_value": p_value}


def test_pairs_by_names_has_both_orders(compared):
    leads = pairs_by_names(corrected_pairs(compared(SEVEN)))
    assert len(leads) == 42
    assert all(leads[a, b].value == -leads[b, a].value for a, b in leads)
    assert leads["g", "a"].value == pytest.approx(-0.8)


def verdict(*numbers):
    pair = {"a": "ann", "b": "bob", "difference": difference(*numbers)}
    return verdicts(comparison({"ann": 0.5, "bob": 0.5}) | {"pairs": [pair]})[0]


def test_a_clear_winner():
    assert verdict(0.1, 0.05, 0.15) == (
        "ann beats bob by 0.100 F1 (95% interval of the difference +0.050 to +0.150, p = 0.010)."
    )


def test_the_interval_is_that_of_the_winner():
    assert verdict(-0.1, -0.15, -0.05) == (
        "bob beats ann by 0.100 F1 (95% interval of the difference +0.050 to +0.150, p = 0.010)."
    )


@pytest.mark.parametrize(("value", "signed"), [(0.01, "+0.010"), (-0.01, "-0.010")])
def test_within_noise_nobody_is_called_ahead(value, signed):
    assert verdict(value, -0.02, 0.03, 0.4) == (
        f"ann and bob: no difference found ({signed} F1, 95% interval of the difference"
        " -0.020 to +0.030, p = 0.400)."
    )


def test_an_interval_that_excludes_0_is_not_enough_after_correction(compared):
    content = compared({"a": 0.9, "b": 0.8, "c": 0.7}, noise=0.05, p_value=0.03)
    assert verdicts(content) == [
        "Suggestive, not established after correcting for 3 pairs: a over b, a over c and b over c."
    ]
    content = compared(SEVEN, noise=0.004, p_value=0.0025)
    assert verdicts(content) == [
        "Suggestive, not established after correcting for 21 pairs: 21 of them."
    ]


@pytest.mark.parametrize("swapped", [False, True])
def test_the_claim_does_not_depend_on_the_order_within_noise(compared, swapped):
    scores = SEVEN | ({"a": 0.895, "b": 0.90} if swapped else {})
    content = compared(scores)
    assert leaders(content) == ["a", "b"]
    assert claim(content) == (
        "a and b (F1 0.895 to 0.900): no difference found. Both are ahead of the other five (0.100"
        " to 0.700) beyond noise."
    )


def test_a_claim_names_those_that_only_some_beat(compared):
    content = compared({"a": 0.50, "b": 0.49, "c": 0.485, "d": 0.3}, noise=0.012)
    assert leaders(content) == ["a", "b"]
    assert claim(content) == (
        "a and b (F1 0.490 to 0.500): no difference found. Both are ahead of d (0.300) beyond"
        " noise. c (0.485) is behind some experiments beyond noise."
    )


def test_one_leader_is_ahead_or_behind_none(compared):
    assert claim(compared({"a": 0.5, "b": 0.25})) == (
        "a (F1 0.500) is ahead of b (0.250) beyond noise."
    )
    pairs = [  # b is beaten only by c, and c only by a
        {"a": "a", "b": "b", "difference": difference(0.1)},
        {"a": "a", "b": "c", "difference": difference(0.05, 0.01, 0.09)},
        {"a": "b", "b": "c", "difference": difference(-0.05, -0.09, -0.01)},
    ]
    content = comparison({"a": 0.5, "b": 0.4, "c": 0.45}) | {"pairs": pairs}
    assert claim(content) == (
        "a (F1 0.500) is ahead of c (0.450) beyond noise. b (0.400) is behind some experiments"
        " beyond noise."
    )


def test_many_leaders_are_counted(compared):
    assert claim(compared(SEVEN, noise=1.0)) == (
        "All seven experiments (F1 0.100 to 0.900): no difference found."
    )
    most = compared({"a": 0.5, "b": 0.5, "c": 0.5, "d": 0.5, "e": 0.1})
    assert claim(most) == (
        "All experiments but e (F1 0.500): no difference found. All are ahead of e (0.100) beyond"
        " noise."
    )
    some = compared(dict(zip("abcdefgh", (0.5, 0.5, 0.5, 0.5, 0.1, 0.1, 0.1, 0.1), strict=True)))
    assert claim(some) == (
        "Four of eight experiments (F1 0.500): no difference found. All are ahead of the other four"
        " (0.100) beyond noise."
    )


@given(st.lists(st.floats(0, 1), min_size=2, max_size=8), st.floats(0, 0.5))
def test_a_claim_has_at_most_three_sentences_and_ranks_nothing_within_noise(values, noise):
    names = [f"system-{index}" for index in range(len(values))]
    content = comparison(dict(zip(names, values, strict=True)), noise=noise)
    text = claim(content)
    assert text.count(". ") <= 2
    best = leaders(content)
    for a in best:
        for b in best:
            assert a == b or not pairs_by_names(corrected_pairs(content))[a, b].beyond_noise
    assert "best" not in text


def accuracy(sums):
    return {"accuracy": sums[..., 0] / sums[..., 1]}


def simulated(seed, skills, groups=40, records=20):
    """A comparison of trainings with these skills, on the same test records in groups.

    The records and their difficulty are the same for every seed, as on another CPU.
    """
    hardness = np.random.default_rng(0).normal(size=(groups, 1)) * 0.3
    generator = np.random.default_rng(seed)
    systems = {}
    for name, skill in skills.items():
        chance = 1 / (1 + np.exp(-(skill + hardness + generator.normal(size=(groups, 1)) * 0.1)))
        right = generator.random((groups, records)) < chance
        counts = np.stack([right.sum(axis=1), np.full(groups, records)], axis=-1)
        systems[name] = Groups(counts[:, np.newaxis], np.full(groups, records))
    metric = Metric("accuracy", "accuracy")
    scores = {name: accuracy(g.sums.sum(axis=0))["accuracy"].item() for name, g in systems.items()}
    pairs = [
        {
            "a": a,
            "b": b,
            "difference": paired_difference(systems[a], systems[b], accuracy, metric)._asdict(),
        }
        for a, b in combinations(systems, 2)
    ]
    return comparison(scores, metric=metric) | {"pairs": pairs}


def test_on_another_cpu_the_best_two_swap_and_the_claim_stays():
    skills = {"one": 1.0, "two": 1.0, "three": 0.0, "four": 0.0, "five": -1.0}
    runs = [simulated(seed, skills) for seed in range(1, 9)]
    first = [
        max(r["systems"], key=lambda name: r["systems"][name]["accuracy"]["value"]) for r in runs
    ]
    assert {*first} == {"one", "two"}
    assert len({re.sub(r"0\.\d+", "#", claim(run)) for run in runs}) == 1
    assert {tuple(tiers(run).values()) for run in runs} == {("a", "a", "b", "b", "c")}
    assert claim(runs[0]).startswith("one and two (accuracy 0.")


def test_a_tie_has_no_winner():
    assert verdict(0.0, -0.02, 0.02, 1.0) == "ann and bob have the same F1 (p = 1.000)."


def test_verdicts_of_many_are_the_leads_of_the_best_and_counts(compared):
    sentences = verdicts(compared(SEVEN))
    assert [sentence.split(" by ")[0] for sentence in sentences] == [
        *(f"a beats {other}" for other in "cdefg"),
        *(f"b beats {other}" for other in "cdefg"),
        "No difference found in 2 of 21 pairs.",
    ]
    assert "p < 0.001, Holm 0.002" in sentences[0]


def test_one_experiment_has_no_verdict(compared):
    assert verdicts(compared({"a": 0.5})) == []


def test_too_few_groups_are_warned_of(compared):
    assert groups_warning(compared(SEVEN)) == ""
    assert groups_warning(compared({"a": 0.5, "b": 0.25}, groups=6)) == ""
    assert groups_warning(compared({"a": 0.5, "b": 0.25}, groups=4)) == (
        "The number of groups of test records (4) is too low to compare two systems: no p value can"
        " be below 0.125."
    )
    content = compared(SEVEN, groups=8)
    assert "(8) is too low" in groups_warning(content)
    assert "no corrected p value can be below 0.164" in groups_warning(content)
    assert not any(pair.beyond_noise for pair in corrected_pairs(content))


def test_matrix_mirrors_itself(compared):
    names = ["x", "y", "z"]
    square = matrix(compared(dict(zip(names, (0.5, 0.25, 0.75), strict=True))))
    assert list(square) == names
    for i, a in enumerate(names):
        assert square[a][i] is None
        for j, b in enumerate(names):
            if i != j:
                assert square[a][j].value == -square[b][i].value
    assert square["x"][1].value == 0.25
    assert square["x"][2].value == -0.25


def test_the_lowest_wins_if_lower_is_better(compared):
    content = compared({"ann": 0.5, "bob": 0.25, "cid": 0.125}, metric=CER)
    pairs = corrected_pairs(content)
    assert leaders(content) == ["cid"]
    ahead, low, high = (getattr(pairs[0], part) for part in ("value", "low", "high"))
    assert (pairs[0].a, pairs[0].b, ahead) == ("bob", "ann", 0.25)
    assert (low, high) == (pytest.approx(0.24), pytest.approx(0.26))
    assert matrix(content)["ann"][1].value == -0.25
    assert verdicts(content) == [
        "cid beats ann by 0.375 CER (95% interval of the difference +0.365 to +0.385,"
        " p < 0.001, Holm < 0.001).",
        "cid beats bob by 0.125 CER (95% interval of the difference +0.115 to +0.135,"
        " p < 0.001, Holm < 0.001).",
    ]


def test_the_interval_changes_its_sign_if_lower_is_better():
    pair = {"a": "ann", "b": "bob", "difference": difference(-0.1, -0.15, -0.02)}
    (lead,) = corrected_pairs(comparison({"ann": 0.4, "bob": 0.5}, metric=CER) | {"pairs": [pair]})
    assert (lead.a, lead.value, lead.low, lead.high) == ("ann", 0.1, 0.02, 0.15)


def test_scores_out_of_a_hundred_have_their_own_decimals(compared):
    content = compared({"ann": 30.06, "bob": 28.0}, noise=3.0, metric=BLEU)
    assert verdicts(content) == [
        "ann and bob: no difference found (+2.1 BLEU, 95% interval of the difference -0.9 to +5.1,"
        " p = 0.500)."
    ]
