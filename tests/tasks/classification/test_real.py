"""Collections of real texts in ../shared/data, if there are any; they are only read."""

from collections import Counter
from pathlib import Path

import pytest

from wxb.corpora.reading import read
from wxb.corpora.records import Record
from wxb.tasks.classification import reading
from wxb.tasks.classification.params import Corpus

DATA = Path(__file__).parents[3] / "../shared/data"
SPLIT = {"test": 0.2, "valid": 0.1}


def items(folder, **corpus):
    if not (DATA / folder).exists():
        pytest.skip(f"{folder} is not in ../shared/data")
    block = Corpus(task="classification", path="x", split=SPLIT, max_characters=60_000, **corpus)
    items = [*read(DATA / folder, block, reading.Reading())]
    records = [item for item in items if isinstance(item, Record)]
    return records, Counter(item.reason for item in items if not isinstance(item, Record))


def test_real_reviews_are_cleaned():
    fields = {"input": "review", "label": "sentiment", "language": None, "id": None}
    records, rejects = items("sentiment", fields=fields)
    assert len(records) == 4000
    assert not rejects
    assert not any("<br" in record.input or "\x85" in record.input for record in records)
    assert Counter(r.gold for r in records) == {"positive": 2000, "negative": 2000}


def test_real_news_have_the_class_of_their_file():
    fields = {"input": "text", "label": None, "language": None, "id": None}
    classes = {"Fake.csv": "fake", "True.csv": "real"}
    records, rejects = items("news", fields=fields, classes=classes)
    assert rejects == {"blank text": 7}
    assert Counter(r.gold for r in records) == {"fake": 1527, "real": 1043}
    of_reuters = [r for r in records if "(Reuters)" in r.input[:80]]
    assert len(of_reuters) > 900
