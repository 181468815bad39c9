"""What pages tell of cost: time, memory and machines, as far as they were measured."""

import json
import shutil
from pathlib import Path

from tests.reporting.test_report import SEVEN, THREE, ranked, written


def test_a_machine_is_named_once_or_in_every_row_if_there_are_more(tree):
    made = tree(THREE)
    page = written(made)
    assert page.text.count("some machine") == 1
    assert "on some machine, 2030-01-02;" in page.sections["cost"]
    path = Path("reports/cost/train/ner-decoder.json")
    another = {"device": "another machine", "finished": "2030-02-03T00:00:00+00:00"}
    path.write_text(json.dumps(json.loads(path.read_text()) | another))
    page = written(made)
    assert "some machine, then another machine" in page.cells("ner-decoder")
    assert "another machine" not in page.cells("ner-encoder")
    assert "each, 2030-01-02 to 2030-02-03;" in page.sections["cost"]


def test_costs_that_nobody_measured(tree):
    made = tree(THREE[:2])
    shutil.rmtree("reports/cost")
    page = written(made)
    assert "not recorded here" in page.cells("ner-encoder")
    assert page.sections["cost"].count("not recorded here") == 2 * 2 + 2 + 2  # and 2 figures
    assert not {"seconds", "f1-seconds"} & {*page.figures}
    assert "f1-parameters" in page.figures
    assert "some machine" not in page.text


def test_wall_time_is_not_told_in_part(tree):
    made = tree(THREE[:2])
    Path("reports/cost/pretrain/decoder.json").unlink()
    page = written(made)
    assert "1 h 01 min" in page.cells("ner-encoder")
    assert "not recorded here" in page.cells("ner-decoder").split("Wall time")[0]
    # What was measured of it is still in the table of costs.
    assert page.sections["cost"].count("1 min 40 s") == 2


def test_pretraining_is_told_once_for_a_backbone(tree):
    page = written(tree(SEVEN))
    cost = page.sections["cost"]
    assert cost.count("1 h 00 min") == 2
    assert ", ".join(ranked(SEVEN[1:])) in cost
    bars = {
        bar["name"]: dict(zip(bar["y"], bar["x"], strict=True))
        for bar in page.figures["seconds"]["data"]
    }
    shared = {name: seconds for name, seconds in bars["pretrain"].items() if seconds}
    assert shared == {"encoder (backbone)": 3600, "decoder (backbone)": 3600}
    assert bars["train"]["ner-third"] == 100


def test_memory_is_told_with_the_gpus_where_there_is_one(tree):
    made = tree(THREE[:2])
    path = Path("reports/cost/train/ner-decoder.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"peak_gpu_memory_mib": 54_321}))
    cost = written(made).sections["cost"]
    assert cost.count("1.2 GiB") == 6
    assert cost.count("1.2 GiB, GPU 53.0 GiB") == 1
