"""What a page says first, and that it says no more than the numbers do."""

import pytest

from tests.reporting.conftest import BLEU, CER
from wxb.reporting import lead as module

TWO = {"ann": 0.5, "bob": 0.75}
SEVEN = dict(zip("abcdefg", (0.90, 0.895, 0.7, 0.5, 0.3, 0.295, 0.1), strict=True))


class Task:
    """A task that tells of the best system as little as it may."""

    USABLE = 0.5

    @staticmethod
    def failures(system):
        return ""


def lead(comparison, costs, task=Task):
    return module.lead(comparison, costs, task)


def costs(seconds, device="some machine"):
    return {f"train@{name}": {"seconds": s, "device": device} for name, s in seconds.items()}


def test_one_experiment(compared):
    told = lead(compared({"ann": 0.5}), {})
    assert told.claim == "ann reaches F1 0.500."
    assert told.noise == "The 95% interval of ann is 0.490 to 0.510."
    assert told.cost == "Training ann changes 1.00 M parameters."
    assert told.failures == ""


def test_two_that_can_be_told_apart(compared):
    told = lead(compared(TWO), costs({"ann": 10, "bob": 25}))
    assert told.claim == "bob is best, with F1 0.750."
    assert told.noise.endswith(
        "The other, ann, is 0.250 behind (95% interval 0.240 to 0.260, p = 0.000): beyond noise."
    )
    assert told.cost == (
        "Training bob takes 25.0 s for 1.00 M parameters, pretraining apart: 2.5 times as long as"
        " ann (10.0 s, 1.00 M parameters), which is 0.250 behind."
    )


def test_two_that_cannot_be_told_apart(compared):
    told = lead(compared(TWO, noise=0.5), costs({"ann": 10, "bob": 5}))
    assert told.claim == "ann and bob: no difference found (F1 0.500 and 0.750)."
    assert told.noise.endswith("within noise.")
    assert "less time than ann (10.0 s" in told.cost
    assert told.cost.endswith("which cannot be told apart from it.")


def test_seven(compared):
    seconds = dict(zip(SEVEN, (100, 40, 1, 50, 60, 70, 80), strict=True))
    told = lead(compared(SEVEN), costs(seconds))
    assert told.claim == (
        "a and b: no difference found (F1 0.900 and 0.895). Both are ahead of the other five beyond"
        " noise."
    )
    assert "The next, b, is 0.005 behind" in told.noise
    assert "p = 0.500, 1.000 corrected for the number of pairs): within noise." in told.noise
    assert told.noise.endswith("The other five are 0.200 to 0.800 behind, all beyond noise.")
    # c is cheaper still, but worse.
    assert "2.5 times as long as b" in told.cost


def test_seven_with_a_clear_best(compared):
    scores = SEVEN | {"b": 0.8}
    told = lead(compared(scores), costs(dict.fromkeys(scores, 100) | {"c": 50}))
    assert told.claim == "a is best, with F1 0.900."
    assert told.cost.endswith(
        "as c (50.0 s, 1.00 M parameters), the cheapest of all, but 0.200 behind."
    )


def test_many_equals_are_counted_and_not_named(compared):
    told = lead(compared(SEVEN, noise=1.0), {})
    assert "All seven experiments: no difference found" in told.claim
    assert told.noise.endswith("all within noise.")


def test_some_within_noise(compared):
    told = lead(compared(SEVEN, noise=0.45), {})
    assert told.claim == (
        "Four of seven experiments: no difference found (F1 0.500 to 0.900). a, b and c are ahead"
        " of g beyond noise. a and b are ahead of e and f beyond noise."
    )
    assert told.noise.endswith(
        "The other five are 0.200 to 0.800 behind, three of them beyond noise."
    )


@pytest.mark.parametrize(
    "measured",
    [{}, costs({"ann": 10}), costs({"ann": 10}) | costs({"bob": 25}, "a faster machine")],
    ids=["nothing", "not all", "not on one machine"],
)
def test_times_that_cannot_be_compared_are_not(compared, measured):
    content = compared(TWO)
    content["systems"]["ann"]["trainable_parameters"] = 50_000
    assert lead(content, measured).cost == (
        "Training bob changes 1.00 M parameters: 20.0 times as many as ann (50.0 k parameters),"
        " which is 0.250 behind."
    )


@pytest.mark.parametrize(
    ("ours", "theirs", "told"),
    [
        (100, 99, "about as long as"),
        (99, 100, "about as long as"),
        (50, 100, "less time than"),
        (1, 0, "more time than"),
    ],
)
def test_times_beside_each_other(compared, ours, theirs, told):
    assert f": {told} ann" in lead(compared(TWO), costs({"ann": theirs, "bob": ours})).cost


@pytest.mark.parametrize(
    ("other", "told"), [(100, "the least of all"), (50, "as little as any of")]
)
def test_the_best_may_be_the_cheapest(compared, other, told):
    scores = {"a": 0.9, "b": 0.5, "c": 0.3}
    assert told in lead(compared(scores), costs({"a": 50, "b": other, "c": 70})).cost


def test_failures_are_those_that_the_task_tells_of_the_best(compared):
    class Telling(Task):
        failures = "fails at {f1[value]}".format_map

    assert lead(compared(TWO), {}, Telling).failures == "fails at 0.75"


def test_too_few_resamples_are_told_at_once(compared):
    told = lead(compared(SEVEN, resamples=100), {})
    assert "no difference found" in told.claim
    assert "100 resamples are too few" in told.noise


def test_a_set_that_none_can_do_is_told_first(compared):
    found = compared({"a": 0.9, "b": 0.8})
    found["further"] = {"situations": compared({"a": 0.4, "b": 0.42})}
    assert lead(found, {}).further == (
        "On situations none can be relied on: b is best with F1 0.420, 0.380 below its F1 on test."
    )


def test_a_set_that_the_best_can_do_is_told_with_the_fall(compared):
    found = compared({"a": 0.9})
    found["further"] = {"tweets": compared({"a": 0.75})}
    assert lead(found, {}).further == ("On tweets a has F1 0.750, 0.150 below its F1 on test.")
    assert lead(compared({"a": 0.9}), {}).further == ""


def test_where_less_is_better_the_least_leads(compared):
    found = compared({"ann": 0.25, "bob": 0.125, "cid": 0.5}, metric=CER)
    found["further"] = {"phone": compared({"ann": 0.625, "bob": 0.75, "cid": 0.875}, metric=CER)}
    told = lead(found, costs({"ann": 10, "bob": 20, "cid": 30}))
    assert told.claim == "bob is best, with CER 0.125."
    assert told.further == (
        "On phone none can be relied on: ann is best with CER 0.625, 0.375 above its CER on test."
    )
    assert told.noise.startswith("The 95% interval of bob is 0.115 to 0.135. The next, ann, is")
    assert "ann, is 0.125 behind (95% interval 0.115 to 0.135" in told.noise
    assert told.noise.endswith("The last, cid, is 0.375 behind, beyond noise.")
    assert told.cost.endswith("the cheapest of all, but 0.125 behind.")
    found["further"]["phone"]["systems"]["ann"]["cer"]["value"] = 0.375
    assert "relied" not in lead(found, {}).further


def test_on_another_set_too_nobody_leads_within_noise(compared):
    found = compared({"a": 0.9, "b": 0.8})
    found["further"] = {"tweets": compared({"a": 0.75, "b": 0.755})}
    assert lead(found, {}).further == (
        "On tweets no difference was found between a and b (F1 0.750 and 0.755, 0.045 to 0.150"
        " below their F1 on test)."
    )
    found["further"] = {"tweets": compared({"a": 0.85, "b": 0.855})}
    assert lead(found, {}).further.endswith("between a and b (F1 0.850 and 0.855).")


def test_a_task_that_calls_nothing_useless_has_no_warning(compared):
    class Lenient(Task):
        USABLE = None

    found = compared({"ann": 30.26, "bob": 12.0}, noise=1.0, metric=BLEU)
    found["further"] = {"news": compared({"ann": 0.26, "bob": 0.0}, metric=BLEU)}
    told = lead(found, {}, Lenient)
    assert told.claim == "ann is best, with BLEU 30.3."
    assert told.further == "On news ann is best with BLEU 0.3, 30.0 below its BLEU on test."
    assert "The other, bob, is 18.3 behind (95% interval 17.3 to 19.3" in told.noise
