from collections import Counter
from itertools import islice

import pytest

from demos import news, reviews

GENERATORS = {"reviews": (reviews.generate, "sentiment"), "news": (news.generate, "label")}
each = pytest.mark.parametrize(("generate", "label"), GENERATORS.values(), ids=GENERATORS)


@each
def test_the_same_seed_gives_the_same_records_and_others_others(generate, label):
    asked = {"labelled": 50, "unlabelled": 10, "languages": ["en"]}
    assert [*generate(**asked, seed=1)] == [*generate(**asked, seed=1)]
    assert [*generate(**asked, seed=1)] != [*generate(**asked, seed=2)]


@each
def test_records_are_labelled_first_and_classes_balanced(generate, label):
    records = [*generate(labelled=1000, unlabelled=30, languages=["en"], seed=1)]
    counts = Counter(record[label] for record in records[:1000])
    assert len(counts) == 2
    assert min(counts.values()) > 430
    assert {record[label] for record in records[1000:]} == {None}
    assert len({record["id"] for record in records}) == 1030


@each
def test_no_field_is_left_open(generate, label):
    for record in islice(generate(labelled=500, unlabelled=0, languages=["en"], seed=1), 500):
        assert not {*"{}"} & {*" ".join(value for value in record.values() if value)}


@each
@pytest.mark.parametrize(
    "wrong", [{"labelled": -1}, {"languages": ["en", "zh"]}, {"languages": []}]
)
def test_what_cannot_be_made_is_an_error(generate, label, wrong):
    asked = {"labelled": 1, "unlabelled": 0, "languages": ["en"], "seed": 1, **wrong}
    with pytest.raises(ValueError, match=r"negative|unknown languages"):
        generate(**asked)


def test_words_of_praise_stand_in_reviews_of_both_kinds():
    records = [*reviews.generate(labelled=3000, unlabelled=0, languages=["en"], seed=1)]
    good = Counter(r["sentiment"] for r in records if " good" in r["review"])
    assert 0.35 < good["positive"] / good.total() < 0.65


def test_a_story_is_one_claim_of_one_publisher():
    records = [*news.generate(labelled=2000, unlabelled=0, languages=["en"], seed=1)]
    for record in records:
        claim, _, publisher = record["story"].rpartition(" (")
        assert publisher == f"{record['source']})"
        assert claim.casefold() in f"{record['title']} {record['text']}".casefold()
    again = Counter(record["story"] for record in records)
    assert any(number > 1 for number in again.values())
    large = Counter(record["source"] for record in records).most_common(2)
    assert {name for name, _ in large} == {"newswire", "truth tribune"}
    assert sum(number for _, number in large) > 1600
