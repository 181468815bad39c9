"""The grammar of phrases: numbers and forms are right in both languages."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from demos.phrases import generate
from tests.project_copy import ROOT
from wxb.core.params import read_yaml
from wxb.corpora import reading
from wxb.corpora.division import divide
from wxb.tasks.translation.params import Corpus
from wxb.tasks.translation.reading import Reading

MANY = [*generate(labelled=2500, unlabelled=0, languages=["zh", "en"], seed=3)]


@given(st.integers(0, 1000), st.integers(1, 30))
def test_a_seed_determines_the_pairs(seed, count):
    options = {"unlabelled": 0, "languages": ["en", "zh"], "seed": seed}
    pairs = [*generate(labelled=count, **options)]
    assert len(pairs) == count
    assert pairs == [*generate(labelled=count, **options)]
    assert len({pair["id"] for pair in pairs}) == count


def test_pairs_are_sentences_of_their_languages():
    for pair in MANY:
        assert re.fullmatch(r"[\u4e00-\u9fff]+[。？]", pair["chinese"]), pair
        assert re.fullmatch(r"[A-Z][A-Za-z' -]+[.?]", pair["english"]), pair
        assert "  " not in pair["english"]
        assert pair["chinese"].endswith("？") == pair["english"].endswith("?")


@pytest.mark.parametrize("seed", [1, 2])
def test_further_sets_hold_out_enough_values(tmp_path, seed):
    """Their values do not occur in training, and intervals resample 30 of them or more."""
    block = read_yaml(ROOT / "params/translation.yaml")["corpora"]["phrases"]
    corpus = Corpus.model_validate(block)
    pairs = generate(unlabelled=0, seed=seed, **block["generate"])
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    task = Reading()
    records = [*reading.read_folder(tmp_path, corpus, task)]
    splits, _ = divide(records, corpus.split, max_records=None, seed=seed)
    for index, name in enumerate(corpus.split.held_out_fields):
        values = {split: {r.values[index] for r in members} for split, members in splits.items()}
        assert len(values[name]) >= 30
        assert not values[name] & (values["train"] | values["valid"])
    assert len({record.group for record in splits["test"]}) >= 300


@pytest.mark.parametrize(
    "changes", [{"unlabelled": 1}, {"languages": ["en"]}, {"languages": ["en", "zh", "de"]}]
)
def test_unsupported_options_are_errors(changes):
    options = {"labelled": 1, "unlabelled": 0, "languages": ["en", "zh"], "seed": 1} | changes
    with pytest.raises(ValueError, match="found"):
        generate(**options)
