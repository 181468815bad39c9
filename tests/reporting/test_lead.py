"""The summary that begins a page."""

import pytest

from tests.reporting.conftest import BLEU, CER
from wxb.reporting import lead as module

TWO = {"ann": 0.5, "bob": 0.75}
SEVEN = dict(zip("abcdefg", (0.90, 0.895, 0.7, 0.5, 0.3, 0.295, 0.1), strict=True))


class Task:
    """A task without failures."""

    USABLE_SCORE = 0.5

    @staticmethod
    def failures(system):
        return ""


def lead(comparison, costs, task=Task):
    return module.lead(comparison, costs, task)


def costs(seconds, device="some machine"):
    return {f"train@{name}": {"seconds": s, "device": device} for name, s in seconds.items()}


def test_one_experiment(compared):
    summary = lead(compared({"ann": 0.5}), {})
    assert summary.claim == "ann reaches F1 0.500."
    assert summary.noise == "The 95% interval of ann is 0.490 to 0.510."
    assert summary.cost == "ann trains 1.00 M parameters."
    assert summary.failures == ""


def test_two_beyond_noise(compared):
    summary = lead(compared(TWO), costs({"ann": 10, "bob": 25}))
    assert summary.claim == "bob (F1 0.750) is ahead of ann (0.500) beyond noise."
    assert summary.noise == (
        "bob beats ann by 0.250 F1 (95% interval of the difference +0.240 to +0.260, p < 0.001)."
    )
    assert summary.cost == (
        "bob trains 1.00 M parameters in 25.0 s. ann is cheaper: it trains 1.00 M parameters in"
        " 10.0 s."
    )


def test_two_within_noise(compared):
    summary = lead(compared(TWO, noise=0.5), costs({"ann": 10, "bob": 25}))
    assert summary.claim == "ann and bob (F1 0.500 to 0.750): no difference found."
    assert summary.noise.startswith("ann and bob: no difference found (-0.250 F1, ")
    assert summary.cost == (
        "The cheapest experiment that no other beats is ann: it trains 1.00 M parameters in 10.0 s."
    )


def test_seven(compared):
    seconds = dict(zip(SEVEN, (100, 40, 1, 50, 60, 70, 80), strict=True))
    summary = lead(compared(SEVEN), costs(seconds))
    assert summary.claim == (
        "a and b (F1 0.895 to 0.900): no difference found. Both are ahead of the other five (0.100"
        " to 0.700) beyond noise."
    )
    assert summary.noise == (
        "19 of 21 differences are beyond noise. No difference found in 2 of 21 pairs."
    )
    assert summary.cost == (
        "The cheapest experiment that no other beats is b: it trains 1.00 M parameters in 40.0 s."
        " c is cheaper: it trains 1.00 M parameters in 1.0 s."
    )


@pytest.mark.parametrize(
    "measured",
    [{}, costs({"ann": 10}), costs({"ann": 10}) | costs({"bob": 25}, "a faster machine")],
    ids=["nothing", "not all", "not on one machine"],
)
def test_times_are_not_compared_unless_one_machine_measured_all(compared, measured):
    content = compared(TWO)
    content["systems"]["ann"]["trainable_parameters"] = 50_000
    assert lead(content, measured).cost == (
        "bob trains 1.00 M parameters. ann is cheaper: it trains 50.0 k parameters."
    )


def test_an_experiment_without_training_is_not_called_cheaper(compared):
    content = compared(TWO)
    content["systems"]["ann"]["trainable_parameters"] = 0
    assert "cheaper" not in lead(content, costs({"ann": 10, "bob": 25})).cost


@pytest.mark.parametrize("noise", [0.01, 1.0])
def test_the_leader_may_be_the_cheapest(compared, noise):
    content = compared({"a": 0.9, "b": 0.5, "c": 0.3}, noise=noise)
    cost = lead(content, costs({"a": 50, "b": 100, "c": 70})).cost
    assert cost.endswith("trains 1.00 M parameters in 50.0 s.")
    assert "cheaper" not in cost


def test_failures_are_those_of_the_first_leader(compared):
    class Failing(Task):
        failures = "fails at {f1[value]}".format_map

    assert lead(compared(TWO), {}, Failing).failures == "bob: fails at 0.75"


def test_too_few_groups_are_warned_of(compared):
    summary = lead(compared(SEVEN, groups=8), {})
    assert "no difference found" in summary.claim
    assert "number of groups of test records (8) is too low" in summary.noise


def test_a_further_set_with_too_few_groups_compares_nothing(compared):
    content = compared(SEVEN)
    content["further"] = {"tweets": compared(SEVEN, groups=8)}
    assert lead(content, {}).further.startswith(
        "On tweets, the number of groups (8) is too low to compare experiments (F1 "
    )


def test_a_set_on_which_no_experiment_is_usable(compared):
    content = compared({"a": 0.9, "b": 0.8})
    content["further"] = {"situations": compared({"a": 0.4, "b": 0.42})}
    assert lead(content, {}).further == (
        "No experiment is usable on situations. On situations, b is best with F1 0.420, 0.380 below"
        " its F1 on test."
    )


def test_a_usable_set_is_shown_with_its_drop(compared):
    content = compared({"a": 0.9})
    content["further"] = {"tweets": compared({"a": 0.75})}
    assert lead(content, {}).further == "On tweets, a has F1 0.750, 0.150 below its F1 on test."
    assert lead(compared({"a": 0.9}), {}).further == ""


def test_the_lowest_leads_if_lower_is_better(compared):
    content = compared({"ann": 0.25, "bob": 0.125, "cid": 0.5}, metric=CER)
    content["further"] = {"phone": compared({"ann": 0.625, "bob": 0.75, "cid": 0.875}, metric=CER)}
    summary = lead(content, costs({"ann": 10, "bob": 20, "cid": 30}))
    assert summary.claim == (
        "bob (CER 0.125) is ahead of ann and cid (0.250 to 0.500) beyond noise."
    )
    assert summary.further == (
        "No experiment is usable on phone. On phone, ann is best with CER 0.625, 0.375 above its"
        " CER on test."
    )
    content["further"]["phone"]["systems"]["ann"]["cer"]["value"] = 0.375
    assert "usable" not in lead(content, {}).further


def test_on_another_set_nobody_leads_within_noise(compared):
    content = compared({"a": 0.9, "b": 0.8})
    content["further"] = {"tweets": compared({"a": 0.75, "b": 0.755})}
    assert lead(content, {}).further == (
        "On tweets, no difference was found between a and b (F1 0.750 to 0.755, 0.045 to 0.150"
        " below their F1 on test)."
    )
    content["further"] = {"tweets": compared({"a": 0.85, "b": 0.855})}
    assert lead(content, {}).further.endswith("between a and b (F1 0.850 to 0.855).")


def test_a_task_without_a_usable_score_has_no_warning(compared):
    class Lenient(Task):
        USABLE_SCORE = None

    content = compared({"ann": 30.26, "bob": 12.0}, noise=1.0, metric=BLEU)
    content["further"] = {"news": compared({"ann": 0.26, "bob": 0.0}, metric=BLEU)}
    summary = lead(content, {}, Lenient)
    assert summary.claim == "ann (BLEU 30.3) is ahead of bob (12.0) beyond noise."
    assert summary.further == "On news, ann is best with BLEU 0.3, 30.0 below its BLEU on test."
    assert "beats bob by 18.3 BLEU (95% interval of the difference +17.3 to +19.3" in summary.noise
