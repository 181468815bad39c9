"""The grammar of phrases: numbers and forms are right in both languages."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demos.phrases import generate
from demos.phrases.grammar import chinese_number, english_number, words

MANY = [*generate(labelled=2500, unlabelled=0, languages=["zh", "en"], seed=3)]


@pytest.mark.parametrize(
    ("number", "chinese", "english"),
    [
        (1, "一", "one"),
        (10, "十", "ten"),
        (12, "十二", "twelve"),
        (20, "二十", "twenty"),
        (35, "三十五", "thirty-five"),
        (99, "九十九", "ninety-nine"),
    ],
)
def test_numbers_are_spelled_out_in_both_languages(number, chinese, english):
    assert chinese_number(number) == chinese
    assert english_number(number) == english


def test_different_numbers_have_different_names():
    for spell in (chinese_number, english_number):
        assert len({spell(number) for number in range(1, 100)}) == 99


@given(st.integers(0, 1000), st.integers(1, 30))
def test_a_seed_determines_the_pairs(seed, count):
    options = {"unlabelled": 0, "languages": ["en", "zh"], "seed": seed}
    pairs = [*generate(labelled=count, **options)]
    assert len(pairs) == count
    assert pairs == [*generate(labelled=count, **options)]
    assert len({pair["id"] for pair in pairs}) == count


def test_every_construction_and_most_combinations_occur():
    kinds = {pair["construction"] for pair in MANY}
    assert kinds == {
        "statement",
        "negation",
        "whether",
        "who",
        "what",
        "where",
        "when",
        "how many",
    }
    assert len({pair["combination"] for pair in MANY}) > 150


def test_pairs_are_sentences_of_their_languages():
    for pair in MANY:
        assert re.fullmatch(r"[\u4e00-\u9fff]+[。？]", pair["chinese"]), pair
        assert re.fullmatch(r"[A-Z][A-Za-z' -]+[.?]", pair["english"]), pair
        assert "  " not in pair["english"]
        assert pair["chinese"].endswith("？") == pair["english"].endswith("?")


def test_a_pair_contains_its_combination():
    verbs = {row[1]: row for row in words()["verbs"]}
    nouns = {row[2]: row for row in words()["nouns"]}
    for pair in MANY:
        verb = next(v for v in verbs if pair["combination"].startswith(f"{v} "))
        noun = pair["combination"].removeprefix(f"{verb} ")
        assert verbs[verb][0] in pair["chinese"]
        if noun != "what":
            assert nouns[noun][0] in pair["chinese"]
            assert nouns[noun][2] in pair["english"] or nouns[noun][3] in pair["english"]


def test_a_second_reference_is_contracted():
    sources = [pair["chinese"] for pair in MANY]
    twice = [pair for pair in MANY if sources.count(pair["chinese"]) > 1]
    assert len(twice) > 20
    assert all("not" in pair["english"] or "n't" in pair["english"] for pair in twice)


@pytest.mark.parametrize(
    "changes", [{"unlabelled": 1}, {"languages": ["en"]}, {"languages": ["en", "zh", "de"]}]
)
def test_unsupported_options_are_errors(changes):
    options = {"labelled": 1, "unlabelled": 0, "languages": ["en", "zh"], "seed": 1} | changes
    with pytest.raises(ValueError, match="found"):
        generate(**options)
