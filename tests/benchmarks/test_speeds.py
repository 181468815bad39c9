"""Benchmarks of speed print their tables, at tiny sizes."""

from functools import partial

from typer.testing import CliRunner

from tests import ner_project
from tests.benchmarks.script import script

models, recurrent, masking = map(script, ("models", "recurrent", "masking"))


def table(benchmark, *options):
    return CliRunner().invoke(benchmark.app, [*options], catch_exceptions=False).output


def test_training_and_generation_of_native_architectures_are_timed(monkeypatch):
    shapes = models.shapes
    monkeypatch.setattr(models, "shapes", lambda **_: shapes(width=16, heads=2, layers=1))
    monkeypatch.setattr(models, "_generation", partial(models._generation, tokens=4))
    output = table(models, "--turns", "1")
    assert output.count("training step") == 3
    assert output.count("one row") == 2


def test_versions_of_an_lstm_are_timed():
    sizes = {"rows": 3, "length": 8, "width": 4, "hidden": 4, "turns": 1, "threads": 1}
    output = table(recurrent, *(f"--{name}={value}" for name, value in sizes.items()))
    assert output.count("forward") == output.count("step") == 2


def test_masking_and_a_pipeline_are_timed(tmp_path, monkeypatch):
    monkeypatch.chdir(ner_project.create_project(tmp_path))
    output = table(masking, "--records", "100", "--turns", "1")
    assert output.count("predict and replace") == 3
    assert "spans found by both:" in output
