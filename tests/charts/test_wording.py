import pytest

from wxb.charts.wording import amount, duration, listed


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.25, "0.2 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min 00 s"),
        (185, "3 min 05 s"),
        (3599.7, "1 h 00 min"),
        (7620, "2 h 07 min"),
    ],
)
def test_duration(seconds, told):
    assert duration(seconds) == told


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (0, "0"),
        (999, "999"),
        (61_440, "61.4 k"),
        (1_417_643, "1.42 M"),
        (8_030_261_248, "8.03 B"),
    ],
)
def test_amount(number, told):
    assert amount(number) == told


def test_listed():
    assert listed(["a"]) == "a"
    assert listed(["a", "b"]) == "a and b"
    assert listed(["a", "b", "c"]) == "a, b and c"
