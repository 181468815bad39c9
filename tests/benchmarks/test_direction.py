"""Decoders with and without the causal mask are compared on the same records."""

import json
from itertools import product

import pytest

from tests.benchmarks.script import script
from wxb.core.files import write_jsonl

sets, direction = script("own_data_sets"), script("direction")
WORDS = ["".join(letters) for letters in product("bdfgh", "aeiou", "klmn")]
# Values of the template, and smaller ones.
SMALLER = {
    "steps: 300": "checkpoints: 1, steps: 2",
    "vocabulary: 4000": "vocabulary: 300",
    "hidden_size: 128": "hidden_size: 16",
    "{examples: 20000, least: 6, most: 20}": "{examples: 1, least: 1, most: 1}",
}


def test_a_gain_is_that_of_the_decoder_without_its_mask():
    def cell(correct):  # of 4 predicted and 4 gold spans in each of 10 groups
        return {
            "train": 20,
            "test": 10,
            "statistics": [[correct + index % 2, 4, 4, 0, 0, 0, 0] for index in range(10)],
            "sizes": [1] * 10,
        }

    correct = {"causal": 0, "bidirectional": 3, "causal_words": 2, "bidirectional_words": 1}
    correct |= {"causal_scratch": 1, "bidirectional_scratch": 1}
    row = direction.table_row("names", {name: cell(count) for name, count in correct.items()})
    assert (row["training records"], row["test records"]) == (20, 10)
    expected = [(0.125, 0.875), (0.625, 0.375), (0.375, 0.375)]
    for (f1, gain), (causal, bidirectional) in zip(direction.PAIRS.values(), expected, strict=True):
        assert row[f1] == pytest.approx([causal, bidirectional])
        assert row[gain][0] == pytest.approx(bidirectional - causal)


@pytest.mark.slow
def test_each_pair_is_compared(tmp_path, monkeypatch):
    rows = [
        {
            "text": f"{name} {' '.join(WORDS[4 * index : 4 * index + 4])}.",
            "spans": [{"start": 0, "end": len(name), "type": "NAME"}],
        }
        for index, name in enumerate(("Ann", "Bob", "Eve", "Joe", "Kim", "Lou", "Max", "Sue") * 3)
    ]
    write_jsonl(tmp_path / "data.jsonl", rows)
    corpus = {"path": "data.jsonl", "fields": {"input": "text", "language": None, "id": None}}
    corpus["split"] = {"by": None, "test": 0.25, "valid": 0.25}
    monkeypatch.setitem(sets.SETS, "names", sets.Data("ner", corpus, (None,)))
    template = direction.TEMPLATE.read_text("utf-8")
    for old, new in SMALLER.items():
        assert old in template
        template = template.replace(old, new)
    (tmp_path / "template.yaml").write_text(template)
    monkeypatch.setattr(direction, "TEMPLATE", tmp_path / "template.yaml")
    options = {"data": tmp_path, "folder": tmp_path / "cells", "tests": 5, "seed": 1}
    output = tmp_path / "table.json"
    direction.main(["names"], **options, output=output)
    rows = json.loads(output.read_text())["rows"]
    (row,) = rows
    assert (row["set"], row["test records"]) == ("names", 5)
    direction.main(["names"], **options, output=output)  # from files
    assert json.loads(output.read_text())["rows"] == rows
    blocks = {
        name: json.loads((tmp_path / f"cells/names-all-{name}.json").read_text())
        for name in ("causal", "bidirectional_words", "causal_scratch")
    }
    assert [block["system"] for block in blocks.values()] == [*blocks]
