"""Benchmarks of speed print their tables, at tiny sizes."""

import os
from functools import partial

import pytest
from dvc.repo import Repo
from typer.testing import CliRunner

from tests import ner_project
from tests.benchmarks.script import script
from wxb.core.files import read_json

NAMES = ("timing", "models", "recurrent", "masking", "tokenize_align", "training", "engines", "gpu")
timing, models, recurrent, masking, _, training, engines, gpu = (
    script(f"speed/{n}") for n in NAMES
)
speed = script("speed/speed")
SIZES = speed.Sizes(turns=1, records=40, stage_records=(20,), empty_stages=(2,))


def table(benchmark, *options):
    return CliRunner().invoke(benchmark.app, [*options], catch_exceptions=False).output


@pytest.fixture
def small_models(monkeypatch):
    shapes = models.shapes
    monkeypatch.setattr(models, "shapes", lambda **_: shapes(width=16, heads=2, layers=1))
    monkeypatch.setattr(models, "GENERATED", 4)
    monkeypatch.setattr(models, "_generation", partial(models._generation, tokens=4))


def test_sides_alternate_and_ratios_are_those_of_a_turn():
    calls = []
    row = timing.compare(
        "x", lambda: calls.append("ours"), "y", lambda: calls.append("theirs"), turns=2
    )
    assert calls == ["ours", "theirs", "theirs", "ours", "ours", "theirs"]
    assert timing.Comparison("x", "y", [(1, 2), (2, 1)]).ratios == [2, 0.5]
    assert len(row.seconds) == 2


def test_training_and_generation_of_native_architectures_are_timed(small_models):
    output = table(models, "--turns", "1")
    assert output.count("training step") == 3
    assert output.count("generation, ") == 3
    assert output.count("without a cache") == 2
    assert models.matmul_shares(1)[0] > 0


def test_versions_of_an_lstm_are_timed():
    sizes = {"rows": 3, "length": 8, "width": 4, "hidden": 4, "turns": 1, "threads": 1}
    output = table(recurrent, *(f"--{name}={value}" for name, value in sizes.items()))
    assert output.count("forward") == output.count("step") == 4


def test_masking_and_a_pipeline_are_timed(tmp_path, monkeypatch):
    monkeypatch.chdir(ner_project.create_project(tmp_path))
    output = table(masking, "--records", "100", "--turns", "1")
    assert output.count("find and mask spans") == 3
    assert "spans found by both:" in output


def test_training_and_prediction_of_a_tagger_are_timed(monkeypatch):
    shape = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1}
    monkeypatch.setattr(training, "demo", partial(training.demo, **shape))
    rows = list(speed.tagger(SIZES))
    assert [row.unit for row in rows] == [
        "times as fast",
        "texts per CPU s",
        *["times as fast"] * 2,
    ]
    assert all(row.value > 0 for row in rows)


@pytest.mark.parametrize("name", training.MODELS)
def test_training_of_a_model_of_each_task_is_timed(name, monkeypatch):
    if name == "a Whisper":
        pytest.importorskip("espeakng_loader")
    monkeypatch.setattr(training, "MODELS", {name: training.MODELS[name]})
    (row,) = speed.other_tasks(SIZES)
    assert name in row.what
    assert row.value > 0


def test_the_time_of_each_method_is_divided(monkeypatch):
    monkeypatch.setattr(training, "METHODS", ("ner-generative",))
    rows = list(speed.methods(SIZES._replace(records=40)))
    assert len(rows) == 4
    assert all(row.value > 0 for row in rows if row.unit != "% padding")
    assert all(row.value < 100 for row in rows if row.unit != "tokens/s")


def test_tiny_models_are_trained_where_there_is_no_gpu(monkeypatch):
    monkeypatch.setattr(gpu.torch.cuda, "is_available", lambda: False)
    assert table(gpu, "--turns", "1", "--rows", "2").count("LLaMA 1B") == 2


def test_stages_of_empty_projects_are_up_to_date(tmp_path):
    engines.write_project(tmp_path, 12)
    with Repo(str(tmp_path)) as repo:
        assert len(repo.index.stages) == 12
        assert repo.status() == {}
    (tmp_path / "out/3").write_text("changed")
    with Repo(str(tmp_path)) as repo:
        assert {*repo.status()} == {os.path.relpath(tmp_path / "dvc.yaml:s3")}


def test_missing_outputs_are_committed_as_empty_files(tmp_path):
    engines.write_project(tmp_path, 2)
    (tmp_path / "dvc.lock").unlink()
    (tmp_path / "out/1").unlink()
    engines.commit_empty_outputs(tmp_path)
    with Repo(str(tmp_path)) as repo:
        assert repo.status() == {}


@pytest.mark.slow
def test_stages_of_dvc_and_snakemake_are_timed():
    rows = list(speed.dag(SIZES))
    assert len(rows) == 2 + len(engines.COMMANDS)
    assert all(row.value > 0 for row in rows)


@pytest.mark.slow
def test_conversations_are_trained_with_a_peer():
    pytest.importorskip("trl")
    (row,) = speed.chat(SIZES)
    assert row.value > 0


def test_the_table_has_a_line_for_what_cannot_be_measured(tmp_path, monkeypatch):
    def absent(sizes):
        """Training with a peer."""
        yield speed.Row("memory", value=2.0, unit="MiB", goal=1)
        raise ImportError("No module named 'peer'")

    monkeypatch.setattr(speed, "GROUPS", (absent, speed.on_gpu))
    output = tmp_path / "reports/benchmarks/speed.json"
    result = table(speed, "--output", str(output))
    assert "Training with a peer" in result
    assert "Traceback" not in result
    memory, missing, *large = read_json(output)["rows"]
    assert (memory["median"], memory["met"]) == ("2", "no")
    assert missing["compared with"] == "not measured: ImportError: No module named 'peer'"
    assert len(large) >= len(gpu.MODELS)


def test_a_row_has_its_range():
    row = speed.Row.from_values("encode", [1.0, 2.0, 3.0], peer="library", goal=1.5)
    cells = ["encode", "library", "2", "1 to 3", "times as fast", "1.5", "yes"]
    assert [*speed.cells(row).values()] == cells
