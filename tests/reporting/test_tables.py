"""What the tables say in words."""

import pytest

from wxb.reporting.tables import verdicts


def verdict(value, low, high, p_value=0.01):
    difference = {"value": value, "low": low, "high": high, "p_value": p_value}
    return verdicts({"pairs": [{"a": "ann", "b": "bob", "difference": difference}]})[0]


def test_a_clear_winner():
    assert verdict(0.1, 0.05, 0.15) == (
        "ann beats bob by 0.100 F1 (95% interval of the difference +0.050 to +0.150, p = 0.010)."
    )


def test_the_interval_is_told_from_the_side_of_the_winner():
    assert verdict(-0.1, -0.15, -0.05) == (
        "bob beats ann by 0.100 F1 (95% interval of the difference +0.050 to +0.150, p = 0.010)."
    )


@pytest.mark.parametrize(("value", "winner"), [(0.01, "ann"), (-0.01, "bob")])
def test_noise_is_called_noise(value, winner):
    told = verdict(value, -0.02, 0.03, 0.4)
    assert told.startswith(f"{winner} is ahead of ")
    assert "within noise" in told


def test_a_tie_has_no_winner():
    assert verdict(0.0, -0.02, 0.02, 1.0) == "ann and bob have the same F1 (p = 1.000)."
