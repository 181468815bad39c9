"""Rules find values in texts, and nothing in numbers whose check fails."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wxb.masking.rules import find_values, has_card_checksum, has_iban_checksum


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("To ann.lee+x@mail.example.com.", [("ann.lee+x@mail.example.com", "e-mail address")]),
        ("卡號 4111-1111-1111-1111。", [("4111-1111-1111-1111", "card number")]),
        ("Pay DE89 3704 0044 0532 0130 00 NOW", [("DE89 3704 0044 0532 0130 00", "IBAN")]),
        ("Call +44 (20) 7946-0018!", [("+44 (20) 7946-0018", "phone number")]),
        ("Order 4111 1111 1111 1112 of 2024-01-02, DE88 3704 0044 0532 0130 00", []),
        ("<EMAIL> at 10:30, +5 degrees, zeros 0000 0000 0000 0000", []),
    ],
)
def test_values_of_a_text(text, values):
    assert [(text[start:end], kind) for start, end, kind in find_values(text)] == values


@given(st.text("0123456789", min_size=12, max_size=18).filter(lambda text: text.strip("0")))
def test_one_check_digit_of_ten_is_valid(digits):
    assert sum(has_card_checksum(f"{digits}{digit}") for digit in range(10)) == 1


@given(st.text("0123456789ABCXYZ", min_size=11, max_size=30))
def test_one_checksum_of_ninety_seven_is_valid(account):
    assert sum(has_iban_checksum(f"GB{number:02d}{account}") for number in range(2, 99)) == 1
