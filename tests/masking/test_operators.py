"""Operators: the same results as presidio, and the same in every run."""

import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from presidio_anonymizer.operators import Decrypt

from wxb.core.errors import WxbError
from wxb.masking import fakes, operators
from wxb.masking.operators import DEFAULT, Hash, Number, Replace, check_types, read_operators

SECRET = "a secret of 16 b"


@pytest.fixture
def config(tmp_path):
    """Writes an operators file and returns its path."""

    def write(text):
        path = tmp_path / "operators.yaml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


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
        (
            f"{{operator: hash, salt: {SECRET}}}",
            hashlib.sha256(f"ann@a.b{SECRET}".encode()).hexdigest(),
        ),
        (
            f"{{operator: hash, hash_type: sha512, salt: {SECRET}}}",
            hashlib.sha512(f"ann@a.b{SECRET}".encode()).hexdigest(),
        ),
    ],
)
def test_operators_replace_values(config, parameters, new):
    assert read_operators(config(f"EMAIL: {parameters}"))["EMAIL"]("ann@a.b", "EMAIL") == new


def test_a_name_is_for_all_types_and_the_default_of_a_file_is_replace(config):
    assert read_operators("number") == {DEFAULT: Number()}
    assert read_operators(config("AGE: {operator: number}")) == {
        DEFAULT: Replace(),
        "AGE": Number(),
    }


def test_the_salt_may_come_from_the_environment(monkeypatch, config):
    with pytest.raises(WxbError, match=r"DEFAULT: needs a `salt` of 16 bytes or more.* found 0"):
        read_operators("hash")
    monkeypatch.setenv(operators.SALT, SECRET)
    assert read_operators("hash")[DEFAULT]("Ann", "NAME") == Hash(salt=SECRET)("Ann", "NAME")
    own = read_operators(config("NAME: {operator: hash, salt: another secret 16}"))["NAME"]
    assert own("Ann", "NAME") != Hash()("Ann", "NAME")


def test_presidio_decrypts_with_the_key(monkeypatch):
    with pytest.raises(WxbError, match="needs a `key` of 16, 24 or 32 bytes"):
        read_operators("encrypt")
    monkeypatch.setenv(operators.KEY, SECRET)
    encrypted = read_operators("encrypt")[DEFAULT]("Zoë", "NAME")
    assert Decrypt().operate(encrypted, {"key": SECRET}) == "Zoë"


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("NAME: {operator: masc}", ["NAME.operator: unknown operator 'masc'; did you mean 'mask'"]),
        (
            "NAME: {operator: mask, masking_chr: x}",
            ["NAME.masking_chr: unknown key; did you mean 'masking_char'"],
        ),
        ("NAME: {operator: mask, masking_char: xy}", ["NAME.masking_char: found 'xy'"]),
        ("NAME: {operator: mask, chars_to_mask: 0}", ["NAME.chars_to_mask: found 0"]),
        ("NAME: mask", ["NAME: expected {operator: NAME, ...}"]),
        ("NAME: {mask: 1}", ["NAME: expected {operator: NAME, ...}"]),
        ("NAME: {operator: fake, method: frist_name}", ["NAME: Faker has no method 'frist_name'"]),
        ("NAME: {operator: fake, locale: xx_XX}", ["NAME: Faker has no locale 'xx_XX'"]),
        ("A: {operator: a}\nB: {operator: b}", ["A.operator", "B.operator"]),
        ("[]", ["expected types with operators"]),
        ("", ["expected types with operators"]),
        ("A: {operator: redact}\nA: {operator: mask}", ["not readable as YAML (line 2"]),
    ],
)
def test_errors_of_a_file_name_valid_values(config, text, faults):
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
        "NAME: {operator: encrypt, key: 12345}",
        "NAME: {operator: encrypt, key: '12345'}",
        "NAME: {operator: encrypt, key: 12345, keys: 1}",
        "NAME: {operator: encrypt, key: {12345",
        "NAME: {operator: hash, salt: a12345, salt: b12345}",
    ],
)
def test_no_error_shows_a_salt_or_a_key(config, text):
    with pytest.raises(WxbError) as error:
        read_operators(config(text))
    assert "12345" not in str(error.value)


def test_neither_name_nor_file():
    with pytest.raises(WxbError, match="no operator 'redakt'; did you mean 'redact'"):
        read_operators("redakt")
    with pytest.raises(WxbError, match="cannot be read"):
        read_operators("missing.yaml")


def test_types_are_those_of_the_experiment():
    check_types({DEFAULT: Number(), "EMAIL": Number()}, ["EMAIL", "CITY"], "ner")
    with pytest.raises(WxbError, match="EMIAL: ner has no such type; did you mean 'EMAIL'"):
        check_types({"EMIAL": Number()}, ["EMAIL", "CITY"], "ner")


def fake(value, type_="NAME", **options):
    return fakes.fake(value, type_, **{"method": None, "locale": "en_US", "seed": "0", **options})


@given(st.text(min_size=1), st.sampled_from([*fakes.METHODS, "IDCARDNUM"]))
def test_fakes_differ_from_their_values_and_are_on_one_line(value, type_):
    new = fake(value, type_)
    assert new
    assert new != value
    assert len(new.splitlines()) == 1
    assert fake(value, type_) == new


def test_fakes_depend_on_value_type_seed_locale_and_method():
    many = {
        fake("Ann"),
        fake("Bob"),
        fake("Ann", "CITY"),
        fake("Ann", seed="1"),
        fake("Ann", locale="zh_TW"),
        fake("Ann", method="iban"),
    }
    assert len(many) == 6
    assert re.fullmatch(r"GB\d\d[A-Z]{4}\d+", fake("Ann", method="iban"))


def test_values_of_other_types_keep_their_shape():
    new = fake("AB-12 34/é É", "IDCARDNUM")
    assert re.fullmatch(r"[A-Z]{2}-\d\d \d\d/[a-z] [A-Z]", new)
    assert fake("--", "IDCARDNUM") == "<IDCARDNUM>"
