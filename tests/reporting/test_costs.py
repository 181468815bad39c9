"""The cost section of pages: time, memory and machines, as far as they were measured."""

import json
import shutil
from pathlib import Path

from tests.reporting.test_report import SEVEN, THREE, parsed_page


def test_one_machine_is_named_once_and_several_in_every_row(tree):
    reports = tree(THREE)
    page = parsed_page(reports)
    assert page.text.count("some machine") == 1
    assert "on some machine, 2030-01-02." in page.sections["cost"]
    path = Path("reports/cost/train/ner-decoder.json")
    another = {"device": "another machine", "finished": "2030-02-03T00:00:00+00:00"}
    path.write_text(json.dumps(json.loads(path.read_text()) | another))
    page = parsed_page(reports)
    assert "some machine, then another machine" in page.cells("ner-decoder")
    assert "another machine" not in page.cells("ner-encoder")
    assert "Measured 2030-01-02 to 2030-02-03." in page.sections["cost"]


def test_missing_costs(tree):
    reports = tree(THREE[:2])
    shutil.rmtree("reports/cost")
    page = parsed_page(reports)
    assert "not recorded here" in page.cells("ner-encoder")
    assert page.sections["cost"].count("not recorded here") == 2 * 2 + 2 + 2  # and 2 figures
    assert not {"seconds", "f1-seconds"} & {*page.figures}
    assert "f1-parameters" in page.figures
    assert "some machine" not in page.text


def test_partial_wall_time_is_not_shown(tree):
    reports = tree(THREE[:2])
    Path("reports/cost/pretrain/decoder.json").unlink()
    page = parsed_page(reports)
    assert "1 h 01 min" in page.cells("ner-encoder")
    assert "not recorded here" in page.cells("ner-decoder").split("Wall time")[0]
    # Its measured stages are still in the table of costs.
    assert page.sections["cost"].count("1 min 40 s") == 2


def test_pretraining_is_shown_once_for_a_backbone(tree):
    page = parsed_page(tree(SEVEN))
    cost = page.sections["cost"]
    assert cost.count("1 h 00 min") == 2
    assert ", ".join(SEVEN[1:]) in cost
    bars = {
        bar["name"]: dict(zip(bar["y"], bar["x"], strict=True))
        for bar in page.figures["seconds"]["data"]
    }
    pretraining = {name: seconds for name, seconds in bars["pretrain"].items() if seconds}
    assert pretraining == {"encoder (backbone)": 3600, "decoder (backbone)": 3600}
    assert bars["train"]["ner-third"] == 100


def test_gpu_memory_is_shown_if_measured(tree):
    reports = tree(THREE[:2])
    path = Path("reports/cost/train/ner-decoder.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"peak_gpu_memory_mib": 54_321}))
    cost = parsed_page(reports).sections["cost"]
    assert cost.count("1.2 GiB") == 6
    assert cost.count("1.2 GiB, GPU 53.0 GiB") == 1
