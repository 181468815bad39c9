"""Sets of records for spaCy and our systems: splits, results in files, and the recipes of docs."""

import importlib.util
import json
import re
import sys
from itertools import product
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
        patch.setitem(sys.modules, "own_data", module)  # typer resolves annotations there
        spec.loader.exec_module(module)
    return module


def members(count, group=str):
    return [Record(str(n), f"text {n}", (), None, group(n)) for n in range(count)]


def test_a_set_is_limited_to_a_size(benchmark):
    splits = {"train": members(100), "valid": members(30), "test": members(50)}
    limited = benchmark.limit(splits, 40, 20, tune=False)
    assert {name: len(records) for name, records in limited.items()} == {
        "train": 40,
        "valid": 8,
        "test": 20,
    }
    assert limited["train"] == splits["train"][:40]


def test_tuning_uses_no_test_record_and_divides_no_group(benchmark):
    train = members(100, lambda index: str(index // 8))
    valid = members(30)
    splits = {"train": train, "valid": valid, "test": members(50)}
    limited = benchmark.limit(splits, 50, 20, tune=True)
    assert limited["test"] == valid[:20]
    assert [record.id for record in limited["valid"]] == [str(n) for n in range(99, 89, -1)]
    # The last 10 records are in two groups, whose other records are neither in valid nor train.
    assert [record.id for record in limited["train"]] == [str(n) for n in range(87, 37, -1)]


@pytest.mark.parametrize("cell", ["conl", "conll-300-minilm"])
def test_unknown_cells_are_errors(benchmark, cell):
    with pytest.raises(WxbError, match="unknown s"):
        list(benchmark.parse_cells([cell], {"pretrained": {}, "scratch": {}}))


@pytest.fixture
def small(benchmark, tmp_path, monkeypatch):
    """A folder with a small set and a recipe that trains in seconds."""
    words = ["".join(letters) for letters in product("bdfgh", "aeiou", "klmn")]
    rows = [
        {
            "text": f"{name} {' '.join(words[4 * index : 4 * index + 4])}.",
            "spans": [{"start": 0, "end": len(name), "type": "NAME"}],
        }
        for index, name in enumerate(NAMES * 3)
    ]
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


def test_results_are_reused_unless_settings_change(benchmark, small, monkeypatch, capsys):
    options = {
        "cells": ["names-all-scratch"],
        "data": small,
        "folder": small / "cells",
        "recipes": small / "recipes.json",
        "tests": 5,
        "seed": 1,
        "tune": False,
        "is_printing_only": False,
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
def test_the_recipes_of_the_pages_are_those_compared(benchmark, page, kind):
    blocks = re.findall(r"^```yaml\n(backbones:.*?)^```", (ROOT / page).read_text(), re.M | re.S)
    content = YAML(typ="safe").load(blocks[0])
    (backbone,) = content["backbones"].values()
    (experiment,) = content["experiments"].values()
    recipe = YAML(typ="safe").load(SCRIPT.with_suffix(".yaml"))[kind]
    recipe["experiment"]["training"]["epochs"] = experiment["training"]["epochs"]
    corpus = {"corpus": backbone["corpus"]}
    assert backbone == recipe["backbone"] | corpus
    names = {key: experiment[key] for key in ("study", "backbone")}
    assert experiment == recipe["experiment"] | corpus | names
    augment = content.get("corpora", {}).get(backbone["corpus"], {}).get("augment")
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
def test_wxb_new_writes_the_recipes_compared(kind, name):
    recipe = read_yaml(ROOT / "benchmarks/own_data.yaml")[kind]
    text = (ROOT / "wxb/tasks/ner/new/study.yaml").read_text(encoding="utf-8")
    blocks = YAML(typ="safe").load(text.replace("$study", "s").replace("$corpus", "c"))
    experiment = dict(blocks["experiments"][name])
    backbone = blocks["backbones"][experiment["backbone"]]
    for training in (experiment["training"], compared := dict(recipe["experiment"]["training"])):
        training.pop("early_stopping_patience")
    assert experiment["training"].pop("epochs") in range(recipe["epochs"]["least"], 16)
    compared.pop("epochs")
    assert experiment["training"] == compared
    assert {**recipe["backbone"], "corpus": "c"} == backbone
    for key in ("architecture", "encoding", "model", "tuning", "prediction"):
        assert experiment[key] == recipe["experiment"][key]
