import re
from collections import Counter
from functools import cache

import pytest

from demos import news, reviews
from demos.reviews import load_templates
from tests.project_copy import ROOT
from wxb.core.params import read_yaml
from wxb.corpora.division import divide
from wxb.corpora.near import CAP, distances
from wxb.corpora.records import Record
from wxb.tasks.classification.params import Corpus

SENTENCE_END = r"(?<=[.!?]) "
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
@pytest.mark.parametrize("languages", [["en", "zh"], []])
def test_unsupported_languages_are_errors(generate, label, languages):
    with pytest.raises(ValueError, match="unknown languages"):
        generate(labelled=1, unlabelled=0, languages=languages, seed=1)


def test_no_sentence_of_two_templates_of_reviews_is_similar():
    sentences = [
        (template.name, sentence.replace("2}", "}"))
        for template in load_templates()
        for text in {*template.texts.values()}
        for sentence in re.split(SENTENCE_END, text)
    ]
    for name in {name for name, _ in sentences}:
        own = [sentence for other, sentence in sentences if other == name]
        others = [sentence for other, sentence in sentences if other != name]
        similar = distances(own, others) < CAP
        assert not similar.any(), [own[index] for index in similar.nonzero()[0]]


def test_every_template_of_reviews_has_as_many_good_as_bad_ones():
    records = [*reviews.generate(labelled=1000, unlabelled=0, languages=["en"], seed=1)]
    difference = Counter()
    for record in records:
        difference[record["template"]] += 1 if record["sentiment"] == "positive" else -1
    assert {*difference.values()} == {0, 1}
    for name, members in splits_of("reviews")[0].items():  # without repetitions
        shares = Counter(record.gold for record in members if record.gold)
        assert max(shares.values()) / shares.total() < 0.52, name


def test_a_story_is_one_claim_of_one_publisher():
    records = [*news.generate(labelled=2000, unlabelled=0, languages=["en"], seed=1)]
    for record in records:
        claim, _, publisher = record["story"].rpartition(" (")
        assert publisher == f"{record['source']})"
        assert claim.casefold() in f"{record['title']} {record['text']}".casefold()
    stories = Counter(record["story"] for record in records)
    assert any(count > 1 for count in stories.values())


@cache
def splits_of(profile):
    """The labelled records of each split of a study's corpus, and all raw records by id."""
    block = read_yaml(ROOT / f"params/{profile}.yaml")["corpora"][profile]
    corpus, fields = Corpus.model_validate(block), block["fields"]
    raw = [*GENERATORS[profile][0](**block["generate"], seed=1)]
    records = [
        Record(
            id=item["id"],
            input=item[fields["input"]],
            gold=item[fields["label"]],
            language="en",
            group=item[corpus.split.by],
            values=tuple(item[by] for by, _ in corpus.split.held_out_fields.values()),
        )
        for item in raw
    ]
    splits, _ = divide(records, corpus.split, max_records=None, seed=1)
    return splits, {item["id"]: item for item in raw}


@pytest.mark.parametrize(
    ("profile", "test_set", "field"),
    [("reviews", "test", "template"), ("news", "other-source", "source")],
)
def test_a_test_set_has_30_values_or_more_that_are_not_in_training(profile, test_set, field):
    splits, raw = splits_of(profile)
    values = {name: {raw[r.id][field] for r in members} for name, members in splits.items()}
    assert len({raw[r.id][field] for r in splits[test_set] if r.gold is not None}) >= 30
    assert not values[test_set] & (values["train"] | values["valid"])
