"""Sets of records for first studies and their peers: divisions, results in files, and recipes."""

import re

from ruamel.yaml import YAML

from tests import demo
from tests.benchmarks.script import script
from tests.project_copy import ROOT
from wxb.cli.new.studies import first_study
from wxb.core.params import check, parse_yaml

benchmark = script("own_data")


def test_a_gain_is_positive_if_the_first_study_is_better():
    cells = {
        system: {
            "system": system,
            "train": 8,
            "test": 16,
            "seconds": 1.0,
            "statistics": {
                # Of the only class, which may be predicted or not.
                "correct": [[[count]] for count in (n, 1, n, 0)],
                "gold": [[[4]]] * 4,
                "predicted": [[[4]]] * 4,
            },
            "sizes": [4] * 4,
        }
        for system, n in (("peer", 1), ("first", 3))
    }
    (row,) = benchmark.table_rows("titles", cells)
    assert row[benchmark.GAIN][0] == 0.25


def test_the_recipe_of_the_page_is_that_of_first_studies():
    text, row = (ROOT / "docs/your-data.md").read_text(), "$study-pretrained"
    content = parse_yaml(re.findall(r"^```yaml\n(backbones:.*?)^```", text, re.M | re.S)[0])
    ((_, backbone),), ((_, experiment),) = (
        content[section].items() for section in ("backbones", "experiments")
    )
    template = first_study("ner", "$study", "$corpus")
    expected = template["experiments"][row]
    expected_backbone = template["backbones"][expected["backbone"]]
    assert backbone | {"corpus": ""} == expected_backbone | {"corpus": ""}
    names = dict.fromkeys(("study", "corpus", "backbone", "training"))
    assert experiment | names == expected | names
    lengths = template["rows"][row].get("epochs")
    assert not lengths or lengths[1] <= experiment["training"]["epochs"] <= lengths[2]
    for key in expected["training"].keys() - {"epochs", "early_stopping_patience"}:
        assert experiment["training"][key] == expected["training"][key]


def test_the_blocks_of_the_page_are_valid_together():
    content = demo.content()
    page = (ROOT / "docs/your-data.md").read_text()
    blocks = re.findall(r"^```yaml\n(.*?)^```", page, re.M | re.S)
    for block in blocks:
        for key, members in YAML(typ="safe").load(block).items():
            content[key] |= members
    check(content)
    assert "mine" in content["corpora"].keys() & content["studies"].keys()
