import pytest

from tests.reporting.conftest import BLEU, CER
from wxb.reporting.formatting import (
    Table,
    amount,
    duration,
    interval,
    p_value,
    rounded,
    signed,
    size,
    with_interval,
    without_folders,
)


@pytest.mark.parametrize(
    ("format_number", "texts"),
    [
        (duration, {7.5: "7.5 s", 59.96: "1 min 00 s", 3599.7: "1 h 00 min", 273_600: "3 d 04 h"}),
        (amount, {0: "0", 999: "999", 61_440: "61.4 k", 1_417_643: "1.42 M", 8.03e9: "8.03 B"}),
        (size, {0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 2**52: "4,096.0 TiB"}),
    ],
)
def test_numbers_have_units(format_number, texts):
    assert {number: format_number(number) for number in texts} == texts


def test_values_have_the_decimals_of_their_metric():
    assert rounded(12.345, BLEU) == "12.3"
    ends = {"value": 0.2, "low": 0.125, "high": 1.25}
    assert with_interval(ends, CER) == f"0.200 ({interval(ends)})" == "0.200 (0.125–1.250)"
    assert with_interval(ends, BLEU, " ± 0.1") == "0.2 ± 0.1 (0.1–1.2)"
    assert interval({"low": -0.25, "high": 0.5}) == "-0.250 to 0.500"


def test_differences_have_a_sign_unless_they_round_to_nothing():
    shown = {-1.25: "-1.250", 0.0004: "0.000", -0.0004: "0.000"}
    assert {difference: signed(difference, CER) for difference in shown} == shown
    assert [signed(difference, BLEU) for difference in (1.25, -0.0)] == ["+1.2", "0.0"]


def test_small_p_values_are_below_a_bound():
    assert [*map(p_value, (1.0, 0.0114, 0.001, 0.0009))] == ["1.000", "0.011", "0.001", "< 0.001"]
    assert [*map(p_value, (0.05, 0.0501, 0.0506))] == ["0.050", "0.0501", "0.051"]


def test_private_folders_are_left_out():
    paths = ["/home/ann/letters.csv", "data/own/letters.csv", "HuggingFaceTB/SmolLM2-135M"]
    assert [*map(without_folders, paths)] == ["letters.csv", *paths[1:]]


def test_a_bar_in_a_cell_is_no_column_of_markdown():
    (_, _, row) = Table("", ["type"], [["A|B"]]).markdown().splitlines()
    assert row == r"| A\|B |"
