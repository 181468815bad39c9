"""Names count as masked if spans cover them completely."""

import json

from tests import demo
from tests.benchmarks.script import script
from tests.project_copy import ROOT

module = script("masked_names")
ARTICLE = {
    "input": "Ann Lee met Bob in Rome.",
    "spans": [
        {"start": 0, "end": 7, "type": "PER"},
        {"start": 12, "end": 15, "type": "PER"},
        {"start": 19, "end": 23, "type": "LOC"},
    ],
}


def test_a_name_in_parts_is_masked_and_a_part_of_a_name_is_not():
    assert module.masked_names(ARTICLE, []) == (0, 2)
    assert module.masked_names(ARTICLE, [(0, 3), (4, 7)]) == (1, 2)
    assert module.masked_names(ARTICLE, [(0, 3), (12, 15)]) == (1, 2)
    assert module.masked_names(ARTICLE, [(4, 7), (12, 14), (19, 23)]) == (0, 2)


def test_the_share_is_of_names_not_of_articles():
    assert module.shares({"masked": 3, "names": 12})[module.MASKED.key] == 0.25


def test_each_tagger_and_generator_of_the_demo_has_a_row():
    content = json.loads((ROOT / "reports/benchmarks/masked_names.json").read_text())
    assert [row["experiment"] for row in content["rows"]] == [
        name for name in demo.NER if name != "ner-mentions"
    ]
