import pytest
from hypothesis import given
from hypothesis import strategies as st

from wxb.tasks.speech.record import normalize, words

USUAL = "width case punctuation"


@pytest.mark.parametrize(
    ("text", "rules", "expected"),
    [
        ("\uff34urn\u3000on，the LIGHT！", USUAL, "turn on the light"),
        ("don't x\u02bcy", USUAL, "dont xy"),
        ("「三十二」 度，用 the light！", USUAL, "三十二度用the light"),
        ("A  b", "", "A b"),
        ("A-b", "case", "a-b"),
        ("開燈", USUAL, "開燈"),
    ],
)
def test_only_the_named_rules_are_applied(text, rules, expected):
    assert normalize(text, rules) == expected


def test_traditional_characters_are_simplified():
    pytest.importorskip("opencc", reason="the extra `simplified` is not installed")
    assert normalize("打開電燈", "simplified") == "打开电灯"


@given(st.text())
def test_words_hold_all_but_white_space(text):
    assert "".join(words(text)) == "".join(text.split())


def test_a_chinese_character_is_a_word():
    assert words("打开 the light灯") == ["打", "开", "the", "light", "灯"]
