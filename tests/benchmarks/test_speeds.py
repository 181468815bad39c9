"""Benchmarks of speed at tiny sizes."""

import os
from contextlib import chdir
from functools import partial
from itertools import count

import pytest
from dvc.repo import Repo
from typer.testing import CliRunner

from stages import align, compare, evaluate, preprocess, tokenize, train
from tests.benchmarks.script import script
from wxb.core.files import read_json
from wxb.core.params import load

NAMES = ("timing", "items", "models", "masking", "tokenize_align", "training", "engines", "speed")
timing, items, models, _, tokenize_align, training, engines, speed = (
    script(f"speed/{name}") for name in NAMES
)
SIZES = speed.Sizes(turns=1, records=40, stage_records=(20,), empty_stages=(2,))


def test_sides_alternate_and_ratios_are_those_of_a_turn():
    calls = []
    row = timing.compare(
        "x", lambda: calls.append("ours"), "y", lambda: calls.append("theirs"), turns=2
    )
    assert calls == ["ours", "theirs", "theirs", "ours", "ours", "theirs"]
    assert timing.Comparison("x", "y", [(1, 2), (2, 1)]).ratios == [2, 0.5]
    assert len(row.seconds) == 2


def test_training_and_generation_of_native_architectures_are_timed(monkeypatch):
    shapes = models.shapes
    monkeypatch.setattr(models, "shapes", lambda **_: shapes(width=16, heads=2, layers=1))
    monkeypatch.setattr(models, "GENERATED", 4)
    monkeypatch.setattr(models, "_generation", partial(models._generation, tokens=4))
    rows = [*models.comparisons(1)]
    assert sum("training step" in row.what for row in rows) == 3
    assert sum("generation, " in row.what for row in rows) == 3
    assert sum("without a cache" in row.peer for row in rows) == 2
    assert models.matmul_shares(1)[0] > 0


def test_training_and_prediction_of_a_tagger_are_timed(monkeypatch):
    shape = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    monkeypatch.setattr(training, "demo", partial(training.demo, **shape))
    rows = list(speed.tagger(SIZES))
    ratio = "times as fast"
    assert [row.unit for row in rows] == [ratio, "texts per CPU s", ratio, ratio]
    assert all(row.value > 0 for row in rows)


def test_tokens_are_timed_in_memory_and_as_stages(monkeypatch):
    seconds = count()

    def run(verb, name, folder):
        modules = (preprocess, tokenize, align, items, train, evaluate, compare)
        (module,) = (module for module in modules if module.__name__.split(".")[-1] == verb)
        with chdir(folder):
            module.main(load(), name)
        return next(seconds), 1.0

    monkeypatch.setattr(tokenize_align, "_run", run)
    monkeypatch.setattr(tokenize_align, "KINDS", ("byte-level-bpe",))
    assert [row.peer for row in speed.tokens(SIZES)] == ["encode_batch", "a loop over spans"]
    options = ["--records", "100", "--sizes", "200"]
    output = CliRunner().invoke(tokenize_align.app, options, catch_exceptions=False).output
    for verb in tokenize_align.STEPS:
        assert output.count(f"| {verb} | 200 |") == 1


def test_empty_stages_are_up_to_date(tmp_path):
    engines.write_project(tmp_path, 12)
    with Repo(str(tmp_path)) as repo:
        assert len(repo.index.stages) == 12
        assert repo.status() == {}
    (tmp_path / "out/3").write_text("changed")
    with Repo(str(tmp_path)) as repo:
        assert {*repo.status()} == {os.path.relpath(tmp_path / "dvc.yaml:s3")}
    (tmp_path / "dvc.lock").unlink()
    (tmp_path / "out/3").unlink()
    engines.commit_empty_outputs(tmp_path)
    with Repo(str(tmp_path)) as repo:
        assert repo.status() == {}


@pytest.mark.slow
def test_stages_of_dvc_and_snakemake_are_timed():
    rows = list(speed.dag(SIZES))
    assert len(rows) == 2 + len(engines.COMMANDS)
    assert all(row.value > 0 for row in rows)


def test_the_table_has_a_line_for_what_cannot_be_measured(tmp_path, monkeypatch):
    def absent(sizes):
        """Training with a peer."""
        yield speed.Row("memory", value=2.0, unit="MiB", goal=1)
        raise ImportError("No module named 'peer'")

    monkeypatch.setattr(speed, "GROUPS", (absent,))
    output = tmp_path / "speed.json"
    CliRunner().invoke(speed.app, ["--output", str(output)], catch_exceptions=False)
    memory, missing = read_json(output)["rows"]
    assert (memory["median"], memory["met"]) == ("2", "no")
    assert missing["compared with"] == "not measured: ImportError: No module named 'peer'"


def test_a_row_has_its_range():
    row = speed.Row.from_values("encode", [1.0, 2.0, 3.0], peer="library", goal=1.5)
    cells = ["encode", "library", "2", "1 to 3", "times as fast", "1.5", "yes"]
    assert [*speed.cells(row).values()] == cells
