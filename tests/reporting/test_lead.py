"""What a page says first, and that it says no more than the numbers do."""

import pytest

from wxb.reporting.lead import lead

TWO = {"ann": 0.5, "bob": 0.75}
SEVEN = dict(zip("abcdefg", (0.90, 0.895, 0.7, 0.5, 0.3, 0.295, 0.1), strict=True))


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
    assert told.claim == "bob is ahead with F1 0.750, but ann cannot be told apart from it."
    assert told.noise.endswith("within noise.")
    assert "less time than ann (10.0 s" in told.cost
    assert told.cost.endswith("which cannot be told apart from it.")


def test_seven(compared):
    seconds = dict(zip(SEVEN, (100, 40, 1, 50, 60, 70, 80), strict=True))
    told = lead(compared(SEVEN), costs(seconds))
    assert told.claim == "a is ahead with F1 0.900, but b cannot be told apart from it."
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
    assert "but the other six cannot be told apart" in told.claim
    assert told.noise.endswith("all within noise.")


def test_some_within_noise(compared):
    told = lead(compared(SEVEN, noise=0.45), {})
    assert "three of the other six" not in told.claim
    assert "b, c and d cannot be told apart" in told.claim
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


def test_failures_are_those_of_the_best_and_of_types_with_enough_spans(compared):
    content = compared(TWO)
    supports = {"RARE": (0.0, 29), "HARD": (0.2, 30), "HARDER": (0.1, 3000), "EASY": (0.9, 500)}
    best = content["systems"]["bob"]
    best["by_type"] = {k: {"f1": f1, "support": n} for k, (f1, n) in supports.items()}
    best["errors"] |= {"correct": 1000, "missed": 30, "wrong_both": 3}
    assert lead(content, {}).failures == (
        "Of the types with 30 gold spans or more, it finds HARDER (F1 0.100 on 3,000 gold spans)"
        " and HARD (F1 0.200 on 30 gold spans) worst. Its commonest error is a missed span:"
        " 30 of 33."
    )


def test_too_few_resamples_are_told_at_once(compared):
    told = lead(compared(SEVEN, resamples=100), {})
    assert "cannot be told apart" in told.claim
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
