"""What takes the place of a value: as presidio does it where it can, the same in every run."""

import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from presidio_anonymizer.operators import Decrypt

from wxb.core.errors import WxbError
from wxb.masking import fakes, operators
from wxb.masking.operators import DEFAULT, Hash, Number, Replace, check_types, read

SECRET = "a secret of 16 b"


@pytest.fixture
def config(tmp_path):
    """Writes an operators file and gives its path."""

    def write(text):
        path = tmp_path / "operators.yaml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


@pytest.mark.parametrize(
    ("asked", "new"),
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
def test_values_become(config, asked, new):
    assert read(config(f"EMAIL: {asked}"))["EMAIL"]("ann@a.b", "EMAIL") == new


def test_a_name_is_for_all_types_and_a_file_leaves_the_rest_to_replace(config):
    assert read("number") == {DEFAULT: Number()}
    assert read(config("AGE: {operator: number}")) == {DEFAULT: Replace(), "AGE": Number()}


def test_the_salt_may_come_from_the_environment(monkeypatch, config):
    with pytest.raises(WxbError, match=r"DEFAULT: needs a `salt` of 16 bytes or more.* found 0"):
        read("hash")
    monkeypatch.setenv(operators.SALT, SECRET)
    assert read("hash")[DEFAULT]("Ann", "NAME") == Hash(salt=SECRET)("Ann", "NAME")
    own = read(config("NAME: {operator: hash, salt: another secret 16}"))["NAME"]
    assert own("Ann", "NAME") != Hash()("Ann", "NAME")


def test_what_is_encrypted_opens_with_the_key_in_presidio(monkeypatch):
    with pytest.raises(WxbError, match="needs a `key` of 16, 24 or 32 bytes"):
        read("encrypt")
    monkeypatch.setenv(operators.KEY, SECRET)
    closed = read("encrypt")[DEFAULT]("Zoë", "NAME")
    assert Decrypt().operate(closed, {"key": SECRET}) == "Zoë"


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
def test_faults_of_a_file_are_told_with_what_is_valid(config, text, faults):
    with pytest.raises(WxbError) as error:
        read(config(text))
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
        read(config(text))
    assert "12345" not in str(error.value)


def test_neither_name_nor_file():
    with pytest.raises(WxbError, match="no operator 'redakt'; did you mean 'redact'"):
        read("redakt")
    with pytest.raises(WxbError, match="cannot be read"):
        read("missing.yaml")


def test_types_are_those_of_the_experiment():
    check_types({DEFAULT: Number(), "EMAIL": Number()}, ["EMAIL", "CITY"], "ner")
    with pytest.raises(WxbError, match="EMIAL: ner finds no such type; did you mean 'EMAIL'"):
        check_types({"EMIAL": Number()}, ["EMAIL", "CITY"], "ner")


def fake(value, type_="NAME", **options):
    return fakes.fake(value, type_, **{"method": None, "locale": "en_US", "seed": "0", **options})


@given(st.text(min_size=1), st.sampled_from([*fakes.METHODS, "IDCARDNUM"]))
def test_fakes_differ_from_their_values_and_are_on_one_line(value, type_):
    made = fake(value, type_)
    assert made
    assert made != value
    assert len(made.splitlines()) == 1
    assert fake(value, type_) == made


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
    made = fake("AB-12 34/é É", "IDCARDNUM")
    assert re.fullmatch(r"[A-Z]{2}-\d\d \d\d/[a-z] [A-Z]", made)
    assert fake("--", "IDCARDNUM") == "<IDCARDNUM>"
