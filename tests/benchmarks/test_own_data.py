"""Sets beside spaCy: cut as told, trained by the stages, kept; the docs have the recipe."""

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from wxb.core.errors import WxbError
from wxb.core.files import write_json, write_jsonl
from wxb.core.params import check, read_yaml
from wxb.corpora.records import Record

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks/own_data.py"
NAMES = ("Ann", "Bob", "Eve", "Joe", "Kim", "Lou", "Max", "Sue")


@pytest.fixture(scope="module")
def benchmark():
    pytest.importorskip("spacy", reason="spaCy is not installed: pip install -e '.[benchmarks]'")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SCRIPT.parent)
        spec = importlib.util.spec_from_file_location("own_data", SCRIPT)
        module = importlib.util.module_from_spec(spec)
        patch.setitem(sys.modules, "own_data", module)  # typer looks there for the annotations
        spec.loader.exec_module(module)
    return module


def members(count, group=lambda number: str(number)):
    return [Record(str(n), f"text {n}", (), None, group(n)) for n in range(count)]


def test_a_set_is_cut_to_a_size(benchmark):
    splits = {"train": members(100), "valid": members(30), "test": members(50)}
    found = benchmark.cut(splits, 40, 20, tune=False)
    assert {name: len(kept) for name, kept in found.items()} == {
        "train": 40,
        "valid": 8,
        "test": 20,
    }
    assert found["train"] == splits["train"][:40]


def test_tuning_reads_no_test_record_and_keeps_groups_apart(benchmark):
    train = members(100, lambda number: str(number // 8))
    valid = members(30)
    splits = {"train": train, "valid": valid, "test": members(50)}
    found = benchmark.cut(splits, 50, 20, tune=True)
    assert found["test"] == valid[:20]
    assert [record.id for record in found["valid"]] == [str(n) for n in range(99, 89, -1)]
    # The last 10 take two groups whole: what is left of these validates no more, nor trains.
    assert [record.id for record in found["train"]] == [str(n) for n in range(87, 37, -1)]


@pytest.mark.parametrize("cell", ["conl", "conll-300-minilm"])
def test_a_cell_that_there_is_not_is_told(benchmark, cell):
    with pytest.raises(WxbError, match="there is no"):
        list(benchmark.chosen([cell], {"pretrained": {}, "scratch": {}}))


@pytest.fixture
def small(benchmark, tmp_path, monkeypatch):
    """A set of its own, in a folder of data, and recipes that train in a moment."""
    rows = [
        {"text": f"Yesterday {name} said she was {age}.", "spans": [[10, 10 + len(name)]]}
        for name in NAMES
        for age in (31, 42, 57)
    ]
    for row in rows:
        row["spans"] = [{"start": a, "end": b, "type": "NAME"} for a, b in row["spans"]]
    write_jsonl(tmp_path / "data.jsonl", rows)
    corpus = {
        "path": "data.jsonl",
        "fields": {"input": "text", "language": None, "id": None},
        "split": {"by": None, "test": 0.25, "valid": 0.25},
    }
    monkeypatch.setattr(benchmark, "SETS", {"names": benchmark.Data(corpus, "zh", (None,))})
    recipe = YAML(typ="safe").load(SCRIPT.with_suffix(".yaml"))["scratch"]
    recipe["backbone"]["tokenizer"]["vocabulary"] = 300
    recipe["backbone"]["architecture"].update(hidden_size=16, num_hidden_layers=1)
    recipe["backbone"]["pretraining"].update(steps=2, checkpoints=1)
    recipe["epochs"] = {"examples": 1, "least": 2, "most": 2}
    write_json(tmp_path / "recipes.json", {"scratch": recipe})
    return tmp_path


def test_a_finished_cell_is_kept_and_made_again_only_where_more_is_asked(
    benchmark, small, monkeypatch, capsys
):
    options = {
        "cells": ["names-all-scratch"],
        "data": small,
        "output": small / "cells",
        "recipes": small / "recipes.json",
        "tests": 5,
        "seed": 1,
        "tune": False,
        "kept": False,
    }
    benchmark.main(**options)
    cell = json.loads((small / "cells/names-all-scratch.json").read_text())
    assert (cell["test"], cell["epochs"], len(cell["valid_f1"])) == (5, 2, 2)
    assert sum(gold for _, gold, _ in cell["counts"]) == 5
    first = capsys.readouterr().out
    assert "| names |" in first
    monkeypatch.setattr(benchmark, "train_one", lambda *_: pytest.fail("trained again"))
    benchmark.main(**options)
    assert first.endswith(capsys.readouterr().out)
    with pytest.raises(pytest.fail.Exception, match="trained again"):
        benchmark.main(**options | {"tests": 4})


@pytest.mark.parametrize(
    ("page", "kind"), [("docs/your-data.md", "pretrained"), ("docs/adding-a-corpus.md", "scratch")]
)
def test_what_the_pages_hand_out_is_what_was_compared(benchmark, page, kind):
    blocks = re.findall(r"^```yaml\n(backbones:.*?)^```", (ROOT / page).read_text(), re.M | re.S)
    handed = YAML(typ="safe").load(blocks[0])
    (backbone,) = handed["backbones"].values()
    (experiment,) = handed["experiments"].values()
    recipe = YAML(typ="safe").load(SCRIPT.with_suffix(".yaml"))[kind]
    recipe["experiment"]["training"]["epochs"] = experiment["training"]["epochs"]
    corpus = {"corpus": backbone["corpus"]}
    assert backbone == recipe["backbone"] | corpus
    names = {key: experiment[key] for key in ("study", "backbone")}
    assert experiment == recipe["experiment"] | corpus | names
    augment = handed.get("corpora", {}).get(backbone["corpus"], {}).get("augment")
    assert augment == recipe["augment"]
    lengths = recipe["epochs"]
    assert lengths["least"] <= experiment["training"]["epochs"] <= lengths["most"]


def test_the_blocks_of_the_page_are_valid_together():
    content = read_yaml(ROOT / "params.yaml")
    page = (ROOT / "docs/your-data.md").read_text()
    blocks = re.findall(r"^```yaml\n(.*?)^```", page, re.M | re.S)
    for block in blocks:
        for key, members in YAML(typ="safe").load(block).items():
            content[key] |= members
    check(content)
    assert {"mine", "news"} <= content["corpora"].keys()
    assert "mine" in content["studies"]


@pytest.mark.parametrize(
    ("kind", "name"), [("pretrained", "s-pretrained"), ("scratch", "s-decoder")]
)
def test_wxb_new_writes_the_recipes_that_were_compared(kind, name):
    recipe = read_yaml(ROOT / "benchmarks/own_data.yaml")[kind]
    text = (ROOT / "wxb/tasks/ner/new/study.yaml").read_text(encoding="utf-8")
    written = YAML(typ="safe").load(text.replace("$study", "s").replace("$corpus", "c"))
    experiment = dict(written["experiments"][name])
    backbone = written["backbones"][experiment["backbone"]]
    for found in (experiment["training"], compared := dict(recipe["experiment"]["training"])):
        found.pop("early_stopping_patience")
    assert experiment["training"].pop("epochs") in range(recipe["epochs"]["least"], 16)
    compared.pop("epochs")
    assert experiment["training"] == compared
    assert {**recipe["backbone"], "corpus": "c"} == backbone
    for key in ("architecture", "encoding", "model", "tuning", "prediction"):
        assert experiment[key] == recipe["experiment"][key]
