"""Sets of records for first studies and their peers: divisions, results in files, and recipes."""

import json
import re
from itertools import product
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from tests.benchmarks.script import script
from wxb.cli.new import studies
from wxb.cli.new.studies import recipe
from wxb.core.errors import WxbError
from wxb.core.files import write_jsonl
from wxb.core.params import check, read_yaml
from wxb.corpora.records import Record
from wxb.project.params_file import parse, to_yaml
from wxb.tasks import recognition

ROOT = Path(__file__).parents[2]
NAMES = ("Ann", "Bob", "Eve", "Joe", "Kim", "Lou", "Max", "Sue")
WORDS = ["".join(letters) for letters in product("bdfgh", "aeiou", "klmn")]

benchmark = script("own_data")
peers, sets = script("own_data_peers"), script("own_data_sets")


def test_a_set_is_limited_to_a_size():
    members = [Record(str(n), f"text {n}", (), None, str(n)) for n in range(100)]
    splits = {"train": members, "valid": members[:30], "test": members[:50]}
    limited = sets.limit(splits, 40, 20)
    assert {name: len(records) for name, records in limited.items()} == {
        "train": 40,
        "valid": 8,
        "test": 20,
    }
    assert limited["train"] == splits["train"][:40]
    assert len(sets.limit(splits, None, 20)["train"]) == 100


def test_cells_are_named_by_task_set_size_and_row():
    assert [*benchmark.parse_cells(["conll-300-decoder"])] == [("conll", 300, ["decoder"])]
    assert [*benchmark.parse_cells(["tatoeba"])] == [*benchmark.parse_cells(["translation"])]
    with pytest.raises(WxbError, match="unknown set 'conl'"):
        list(benchmark.parse_cells(["conl"]))


def test_a_gain_is_positive_if_the_first_study_is_better():
    cells = {
        system: {
            "system": system,
            "train": 8,
            "test": 16,
            "seconds": 1.0,
            "statistics": [[n, 4], [1, 4], [n, 4], [0, 4]],
            "sizes": [4] * 4,
        }
        for system, n in (("peer", 1), ("first", 3))
    }
    (row,) = benchmark.table_rows("titles", cells)
    assert row[benchmark.GAIN][0] == 0.25


def run(capsys, folder, **changed):
    """The printed lines of the benchmark on the sets in `folder`."""
    options = {"data": folder, "folder": folder / "cells", "output": None}
    options |= {"tests": 40, "seed": 1}
    benchmark.main(**options | changed)
    return capsys.readouterr().out.splitlines()


@pytest.fixture
def texts(tmp_path, monkeypatch):
    """A folder with a small set of texts with classes."""
    rows = [
        {"text": f"{word} {('good', 'bad')[n % 2]} {WORDS[-n]}.", "label": "ab"[n % 2]}
        for n, word in enumerate(WORDS[:60])
    ]
    write_jsonl(tmp_path / "texts.jsonl", rows)
    corpus = {"path": "texts.jsonl", "split": {"test": 0.25, "valid": 0.1}}
    corpus["fields"] = {"input": "text", "language": None, "id": None}
    monkeypatch.setitem(sets.SETS, "texts", sets.Data("classification", corpus, (30,)))
    monkeypatch.setattr(studies, "are_packages_installed", lambda: False)
    return tmp_path


@pytest.mark.slow
def test_results_are_reused_unless_settings_change(texts, monkeypatch, capsys):
    *_, row = run(capsys, texts, cells=["texts"])
    assert row.startswith("| texts | 30 | 15 | accuracy |")
    assert "| tfidf |" in row
    cell = json.loads((texts / "cells/texts-30-first.json").read_text())
    assert [count for _, count in cell["statistics"]] == [1] * 15
    monkeypatch.setattr(benchmark, "train_one", lambda *_, **__: pytest.fail("trained again"))
    assert run(capsys, texts, cells=["texts"])[-1] == row
    with pytest.raises(pytest.fail.Exception, match="trained again"):
        run(capsys, texts, cells=["texts"], tests=4)


@pytest.mark.slow
def test_spans_are_compared_with_spacy(tmp_path, monkeypatch, capsys):
    pytest.importorskip("spacy", reason="spaCy is not installed: pip install -e '.[benchmarks]'")
    rows = [
        {
            "text": f"{name} {' '.join(WORDS[4 * index : 4 * index + 4])}.",
            "spans": [{"start": 0, "end": len(name), "type": "NAME"}],
        }
        for index, name in enumerate(NAMES * 3)
    ]
    write_jsonl(tmp_path / "data.jsonl", rows)
    corpus = {"path": "data.jsonl", "fields": {"input": "text", "language": None, "id": None}}
    corpus["split"] = {"by": None, "test": 0.25, "valid": 0.25}
    monkeypatch.setitem(sets.SETS, "names", sets.Data("ner", corpus, (None,), "zh"))
    monkeypatch.setattr(studies, "are_packages_installed", lambda: False)
    monkeypatch.setattr(peers, "RECORDS", 1)
    template = parse(recognition.template("ner"))
    backbone = template["backbones"]["$study-llama"]
    backbone["architecture"] |= {"hidden_size": 16, "num_hidden_layers": 1}
    backbone["pretraining"] |= {"steps": 2, "checkpoints": 1}
    backbone["tokenizer"]["vocabulary"] = 300
    template["rows"]["$study-decoder"]["epochs"] = {"examples": 1, "least": 2, "most": 2}
    monkeypatch.setattr(recognition, "template", lambda task: to_yaml(template))
    *_, row = run(capsys, tmp_path, cells=["names-all-decoder"], tests=5)
    assert row.startswith("| names | 12 | 5 | F1 |")
    assert "| decoder |" in row


@pytest.mark.parametrize(
    ("page", "row"), [("your-data", "$study-pretrained"), ("adding-a-corpus", "$study-crf")]
)
def test_the_recipes_of_the_pages_are_those_of_first_studies(page, row):
    text = (ROOT / f"docs/{page}.md").read_text()
    content = parse(re.findall(r"^```yaml\n(backbones:.*?)^```", text, re.M | re.S)[0])
    ((_, backbone),), ((_, experiment),) = (
        content[section].items() for section in ("backbones", "experiments")
    )
    template = parse(recognition.template("ner"))
    expected = template["experiments"][row]
    expected_backbone = template["backbones"][expected["backbone"]]
    assert backbone | {"corpus": ""} == expected_backbone | {"corpus": ""}
    names = dict.fromkeys(("study", "corpus", "backbone", "training"))
    assert experiment | names == expected | names
    lengths = recipe(template).rows[row].epochs
    assert not lengths or lengths.least <= experiment["training"]["epochs"] <= lengths.most
    for key in expected["training"].keys() - {"epochs", "early_stopping_patience"}:
        assert experiment["training"][key] == expected["training"][key]


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
