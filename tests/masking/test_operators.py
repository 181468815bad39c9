"""Operators have the same results in every run."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.masking.rules import mapping_of
from tests.repository import write
from wxb.core.errors import WxbError
from wxb.masking import operators
from wxb.masking.operators import DEFAULT, FAKER_METHODS, Operator, read_operators
from wxb.masking.placeholders import Placeholders

SECRET = "a secret of 16 b"


@pytest.fixture
def config(cwd):
    """Writes an operators file and returns its path."""
    return lambda text: str(write("operators.yaml", text))


@pytest.mark.parametrize(
    ("parameters", "new"),
    [
        ("{operator: replace}", "<EMAIL>"),
        ("{operator: replace, new_value: X}", "X"),
        ("{operator: redact}", ""),
        ("{operator: mask}", "*******"),
        ("{operator: mask, masking_char: x, chars_to_mask: 2}", "xxn@a.b"),
        ("{operator: mask, masking_char: x, chars_to_mask: 100, from_end: true}", "xxxxxxx"),
        ("{operator: mask, chars_to_mask: 2, from_end: true}", "ann@a**"),
    ],
)
def test_operators_replace_values(config, parameters, new):
    operator = read_operators(config(f"EMAIL: {parameters}"))["EMAIL"]
    assert operator("ann@a.b", "EMAIL", Placeholders()) == new


def test_a_name_is_for_all_types_and_the_default_of_a_file_is_replace(config):
    assert read_operators("number") == {DEFAULT: Operator(operator="number")}
    assert read_operators(config("AGE: {operator: number}")) == {
        DEFAULT: Operator(operator="replace"),
        "AGE": Operator(operator="number"),
    }


def test_the_salt_may_come_from_the_environment(monkeypatch, config):
    with pytest.raises(WxbError, match="salt"):
        read_operators("hash")
    monkeypatch.setenv(operators.SALT, SECRET)
    own = read_operators(config("NAME: {operator: hash, salt: another secret 16}"))["NAME"]
    both = [operator("Ann", "NAME", None) for operator in (read_operators("hash")[DEFAULT], own)]
    for new, salt in zip(both, (SECRET, "another secret 16"), strict=True):
        assert new == hashlib.sha256(f"Ann{salt}".encode()).hexdigest()


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("NAME: {operator: masc}", ["NAME", "'mask'"]),
        ("NAME: {operator: mask, masking_chr: x}", ["NAME.masking_chr"]),
        ("NAME: {operator: mask, masking_char: xy}", ["NAME.masking_char"]),
        ("NAME: {operator: mask, chars_to_mask: 0}", ["NAME.chars_to_mask"]),
        ("NAME: {operator: redact, locale: de_DE}", ["NAME", "redact has no option 'locale'"]),
        ("NAME: mask", ["NAME"]),
        ("NAME: {mask: 1}", ["NAME"]),
        ("NAME: {operator: fake, locale: xx_XX}", ["NAME", "xx_XX"]),
        ("A: {operator: a}\nB: {operator: b}", ["A.operator: ", "B.operator: "]),
        ("[]", ["expected operators by type"]),
        ("", ["expected operators by type"]),
        ("A: {operator: redact}\nA: {operator: mask}", ["operators.yaml: not readable"]),
    ],
)
def test_errors_of_a_file_have_the_key(config, text, faults):
    with pytest.raises(WxbError) as error:
        read_operators(config(text))
    for fault in faults:
        assert fault in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "NAME: {operator: hash, salt: 12345}",
        "NAME: {operator: hash, salt: [12345]}",
        "NAME: {operator: hash, salt: x12345}",
        "NAME: {operator: hash, salt: a12345, salt: b12345}",
    ],
)
def test_no_error_shows_a_salt(config, text):
    with pytest.raises(WxbError) as error:
        read_operators(config(text))
    assert "12345" not in str(error.value)


def fake(value, type_="NAME", placeholders=None, **options):
    return Operator(operator="fake", **options)(value, type_, placeholders or Placeholders())


@given(st.text(min_size=1), st.sampled_from([*FAKER_METHODS, "AGE"]))
def test_fakes_differ_from_their_values_and_are_on_one_line(value, type_):
    new = fake(value, type_)
    assert new
    assert new != value
    assert len(new.splitlines()) == 1
    assert fake(value, type_) == new


def test_fakes_depend_on_value_type_salt_and_locale():
    options = ({}, {"type_": "CITY"}, {"salt": "x"}, {"locale": "zh_TW"})
    assert len({fake("Bob"), *(fake("Ann", **each) for each in options)}) == 5
    assert fake("12", "AGE") == "<AGE_1>"
    assert fake("Kent", "STATE", locale="en_GB") == "<STATE_1>"  # its Faker has none


@pytest.mark.parametrize("type_", ["ZIPCODE", "GIVENNAME"])
def test_two_values_never_have_one_fake(type_):
    placeholders = Placeholders()
    values = [str(number) for number in range(99)]
    fakes = [fake(value, type_, placeholders) for value in values]
    assert len({*fakes}) == len(values)
    assert [fake(value, type_, placeholders) for value in values] == fakes
    saved = mapping_of(placeholders.values, fakes=placeholders.fakes)
    assert [fake(value, type_, saved) for value in values] == fakes
