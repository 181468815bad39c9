from collections import Counter
from itertools import islice

import pytest

from demos import news, reviews

GENERATORS = {"reviews": (reviews.generate, "sentiment"), "news": (news.generate, "label")}
each = pytest.mark.parametrize(("generate", "label"), GENERATORS.values(), ids=GENERATORS)


@each
def test_the_seed_determines_the_records(generate, label):
    options = {"labelled": 50, "unlabelled": 10, "languages": ["en"]}
    assert [*generate(**options, seed=1)] == [*generate(**options, seed=1)]
    assert [*generate(**options, seed=1)] != [*generate(**options, seed=2)]


@each
def test_records_are_labelled_first_and_classes_balanced(generate, label):
    records = [*generate(labelled=1000, unlabelled=30, languages=["en"], seed=1)]
    counts = Counter(record[label] for record in records[:1000])
    assert len(counts) == 2
    assert min(counts.values()) > 430
    assert {record[label] for record in records[1000:]} == {None}
    assert len({record["id"] for record in records}) == 1030


@each
def test_all_placeholders_are_filled(generate, label):
    for record in islice(generate(labelled=500, unlabelled=0, languages=["en"], seed=1), 500):
        assert not {*"{}"} & {*" ".join(value for value in record.values() if value)}


@each
@pytest.mark.parametrize(
    "changes", [{"labelled": -1}, {"languages": ["en", "zh"]}, {"languages": []}]
)
def test_unsupported_options_are_errors(generate, label, changes):
    options = {"labelled": 1, "unlabelled": 0, "languages": ["en"], "seed": 1, **changes}
    with pytest.raises(ValueError, match=r"negative|unknown languages"):
        generate(**options)


def test_words_of_praise_occur_in_both_classes():
    records = [*reviews.generate(labelled=3000, unlabelled=0, languages=["en"], seed=1)]
    good = Counter(r["sentiment"] for r in records if " good" in r["review"])
    assert 0.35 < good["positive"] / good.total() < 0.65


def test_a_story_is_one_claim_of_one_publisher():
    records = [*news.generate(labelled=2000, unlabelled=0, languages=["en"], seed=1)]
    for record in records:
        claim, _, publisher = record["story"].rpartition(" (")
        assert publisher == f"{record['source']})"
        assert claim.casefold() in f"{record['title']} {record['text']}".casefold()
    stories = Counter(record["story"] for record in records)
    assert any(count > 1 for count in stories.values())
    large = Counter(record["source"] for record in records).most_common(2)
    assert {name for name, _ in large} == {"newswire", "truth tribune"}
    assert sum(count for _, count in large) > 1600
