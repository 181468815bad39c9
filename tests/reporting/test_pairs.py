"""The paired tests and the letters of tiers, and what they establish."""

import re
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reporting.conftest import BLEU, CER, F1, comparison, with_baselines
from wxb.metrics.intervals import holm
from wxb.reporting import pairs
from wxb.reporting.parts import DEEPEST, score_cell

SEVEN = dict(zip("abcdefg", (0.90, 0.895, 0.7, 0.5, 0.3, 0.295, 0.1), strict=True))
NAMES = "pqrstuv"


def numbers(text):
    """The numbers of a sentence."""
    return re.findall(r"\b\d+(?:\.\d+)?\b", re.sub("F1|CER", "", text))


def test_holm_as_r_computes_it():
    # p.adjust(c(0.04, 0.01, 0.03, 0.005, 0.5), "holm")
    assert holm([0.04, 0.01, 0.03, 0.005, 0.5]) == pytest.approx([0.09, 0.04, 0.09, 0.025, 0.5])


@given(st.lists(st.floats(0, 1), max_size=30))
def test_holm_keeps_the_order_between_the_raw_values_and_bonferroni(values):
    ordered = sorted(zip(values, holm(values), strict=True))
    assert [p for _, p in ordered] == sorted(p for _, p in ordered)
    assert all(raw <= corrected <= min(1, len(values) * raw) for raw, corrected in ordered)


def test_pairs_are_leads_of_the_winner():
    (pair,) = pairs.tested_pairs(comparison({"loser": 0.25, "winner": 0.5}))
    assert (pair.a, pair.b, pair.value) == ("winner", "loser", 0.25)
    assert (pair.low, pair.high) == pytest.approx((0.24, 0.26))
    assert pair.swapped().swapped() == pair


def test_significant_needs_the_interval_and_the_corrected_p():
    (pair,) = pairs.tested_pairs(comparison({"a": 0.5, "b": 0.25}))
    assert all(side.significant for side in (pair, pair.swapped()))
    others = (pair._replace(low=0.0), pair._replace(corrected=pairs.ALPHA + 0.001))
    assert not any(other.significant for other in others)


def test_an_interval_that_excludes_0_is_not_enough_after_correction():
    content = comparison({"a": 0.9, "b": 0.8, "c": 0.7}, noise=0.05, p_value=0.03)
    assert {pair.conclusion for pair in pairs.tested_pairs(content)} == {"not significant"}
    assert {*pairs.tiers(content).values()} == {"a"}


@pytest.mark.parametrize("swapped", [False, True])
def test_the_claim_does_not_depend_on_the_order_within_noise(swapped):
    content = comparison(SEVEN | ({"a": 0.895, "b": 0.90} if swapped else {}))
    assert pairs.leaders(content) == ["a", "b"]
    assert numbers(pairs.conclusion(content)) == ["0.895", "0.900", "0.195", "0.185", "0.205"]
    assert pairs.conclusion(content).startswith("a and b (F1 ")


@pytest.mark.parametrize(
    ("scores", "noise", "best", "expected"),
    [
        ({"a": 0.5}, 0.01, ["a"], ["0.500"]),
        ({"a": 0.5, "b": 0.25}, 0.01, ["a"], ["0.500", "0.250", "0.240", "0.260"]),
        ({"a": 0.25, "b": 0.5}, 0.3, ["a", "b"], ["0.250", "0.500"]),
        # c is beaten by a only
        ({"a": 0.5, "b": 0.49, "c": 0.485, "d": 0.3}, 0.012, ["a", "b"], ["0.490", "0.500"]),
    ],
)
def test_a_claim_has_the_leaders_and_how_far_they_are_ahead(scores, noise, best, expected):
    content = comparison(scores, noise=noise)
    assert pairs.leaders(content) == best
    assert numbers(pairs.conclusion(content)) == expected
    assert pairs.conclusion(content).startswith(" and ".join(best))


@given(st.lists(st.floats(0, 1), min_size=2, max_size=8), st.floats(0, 0.5))
def test_no_two_leaders_differ_significantly(values, noise):
    names = [f"system-{index}" for index in range(len(values))]
    content = comparison(dict(zip(names, values, strict=True)), noise=noise)
    leads = pairs.pairs_by_names(pairs.tested_pairs(content))
    best = pairs.leaders(content)
    assert best
    assert not any(leads[pair].significant for pair in combinations(best, 2))
    others = [name for name in names if name not in best]
    assert all(any(leads[a, b].significant for a in names if a != b) for b in others)


@pytest.mark.parametrize(
    ("scores", "baselines", "metric", "behind"),
    [
        ({"a": 0.9, "b": 0.5}, {"copy": 0.4}, F1, None),
        ({"a": 0.9, "b": 0.5}, {}, F1, None),
        ({"a": 0.9, "b": 0.5}, {"copy": 0.4, "near": 0.6}, F1, "b is"),
        ({"a": 0.9, "b": 0.5}, {"near": 0.9}, F1, "a and b are"),
        ({"a": 0.9, "b": 0.5}, {"near": 0.7}, CER, "a is"),
    ],
)
def test_the_claim_names_experiments_that_are_not_ahead_of_a_baseline(
    scores, baselines, metric, behind
):
    made = with_baselines(scores, baselines, metric)
    assert pairs.leaders(made) == (["b"] if metric is CER else ["a"])
    sentence = f"{behind} not ahead of the baseline near ({baselines.get('near', 0):.3f})."
    said = pairs.conclusion(made).partition("). ")[2]
    assert said == (sentence if behind else "")


@pytest.mark.parametrize(
    ("scores", "groups", "least"),
    [
        (SEVEN, 20, None),
        ({"a": 0.5, "b": 0.25}, 6, None),
        ({"a": 0.5, "b": 0.25}, 4, "0.125"),
        (SEVEN, 8, "0.164"),
    ],
)
def test_too_few_groups_are_warned_of(scores, groups, least):
    content = comparison(scores, groups=groups)
    expected = [] if least is None else [least, str(groups)]
    assert numbers(pairs.groups_warning(content)) == expected
    assert any(pair.significant for pair in pairs.tested_pairs(content)) == (least is None)


def test_a_warning_is_about_the_test_set_with_too_few_groups():
    two = {"a": 0.5, "b": 0.25}
    content = comparison(two, groups=60) | {"further": {"new": comparison(two, groups=4)}}
    assert numbers(pairs.groups_warning(content)) == ["0.125", "4"]
    content = comparison(two, groups=6) | {"further": {"new": comparison(two, groups=60)}}
    assert pairs.groups_warning(content) == ""


def test_without_a_test_nothing_is_said_about_differences():
    for scores in ({"a": 0.5}, {"a": 0.5, "b": 0.25}):
        said = pairs.conclusion(comparison(scores) | {"pairs": []})
        assert "not tested" in said
        assert "significant" not in said


def test_the_lowest_wins_if_lower_is_better():
    assert pairs.leaders(comparison({"ann": 0.5, "bob": 0.25, "cid": 0.125}, metric=CER)) == ["cid"]
    content = comparison({"ann": 0.4, "bob": 0.5}, metric=CER)
    content["pairs"][0]["difference"] |= {"low": -0.15, "high": -0.02}
    (lead,) = pairs.tested_pairs(content)
    assert (lead.a, lead.value, lead.low, lead.high) == ("ann", 0.1, 0.02, 0.15)


@given(st.floats(0, 1), st.floats(0, 1))
def test_shade_grows_with_the_score_on_the_scale_of_the_metric(a, b):
    low, high = (score_cell(score).shade for score in sorted((a, b)))
    assert 0 <= low <= high <= DEEPEST
    assert [score_cell(x, BLEU).shade for x in (0, 50, 100)] == [0, round(DEEPEST / 4), DEEPEST]


@st.composite
def relations(draw):
    """Names, and pairs of them that differ, in any direction and order."""
    names = NAMES[: draw(st.integers(1, len(NAMES)))]
    chosen = [pair for pair in combinations(names, 2) if draw(st.booleans())]
    swapped = [pair if draw(st.booleans()) else pair[::-1] for pair in chosen]
    return names, draw(st.permutations(swapped))


@given(relations())
def test_two_share_a_letter_if_and_only_if_no_difference_is_established(relation):
    names, leads = relation
    found = pairs.letters(names, leads)
    established = {frozenset(pair) for pair in leads}
    for a, b in combinations(names, 2):
        assert bool({*found[a]} & {*found[b]}) == ({a, b} not in established)
    assert all(found.values())


@given(relations(), st.randoms())
def test_letters_do_not_depend_on_the_order_of_the_tests(relation, random):
    names, leads = relation
    shuffled = [*leads]
    random.shuffle(shuffled)
    assert pairs.letters(names, shuffled) == pairs.letters(names, leads)


def test_the_first_letter_is_that_of_the_leaders():
    assert pairs.letters("xyz", [("z", "x"), ("z", "y")]) == {"x": "b", "y": "b", "z": "a"}
    assert pairs.letters("xyz", [("x", "z")]) == {"x": "a", "y": "ab", "z": "b"}


def test_letters_go_on_after_z():
    names = [f"{index:02}" for index in range(54)]
    found = pairs.letters(names, [*combinations(names, 2)])
    assert [found[name] for name in ("00", "25", "26", "53")] == ["a", "z", "a1", "b2"]


@pytest.mark.parametrize(
    ("question", "start"), [("ab", "0.005 0.005 0.015 1.000"), ("ca", "0.200 0.190 0.210 0.002")]
)
def test_the_pair_of_the_question_comes_first(question, start):
    content = comparison(SEVEN) | {"question": [*question]}
    sentence, rest = pairs.conclusion(content).split("). ", 1)
    assert numbers(sentence) == start.split()
    assert ("ahead" in sentence) == (question == "ca")
    assert rest == pairs.conclusion(comparison(SEVEN))
