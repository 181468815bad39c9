"""Whether the bytes that are promised for the profile tiny were met."""

import json
import shutil
from pathlib import Path

import pytest

from tests.repository import write
from wxb.core import paths
from wxb.core.files import write_json
from wxb.project import profiles
from wxb.project.reproduction.promise import kept, promised

ROOT = Path(__file__).parents[3]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project at size tiny, where two models and a metric keep what was promised."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "params.yaml", tmp_path)
    shutil.copytree(ROOT / "params", tmp_path / "params")
    profiles.switch("tiny")
    for path in (
        "models/a/model.safetensors",
        "models/b/config.json",
        "reports/metrics/ner/b.json",
    ):
        write(path, f"the bytes of {path}")
    write("reports/metrics/kept-from-elsewhere/b.json", "the metrics of a study of another profile")
    write("models/.gitignore", "/a\n/b\n")
    write_json(paths.PROMISE, promised())


def test_what_was_promised_is_met(project):
    assert json.loads(paths.PROMISE.read_text())["files"].keys() == {
        "models/a/model.safetensors",
        "models/b/config.json",
        "reports/metrics/ner/b.json",
    }
    assert kept() == (3, [], [])
    assert kept().line == "portable: 3 of 3 files have the bytes that reports/tiny.json promises"


def test_what_differs_or_is_missing_is_named(project):
    write("models/a/model.safetensors", "other bytes")
    write("models/c/more.json", "not promised")
    Path("models/b/config.json").unlink()
    assert kept() == (3, ["models/b/config.json"], ["models/a/model.safetensors"])
    assert kept().line == (
        "portable: 1 of 2 files have the bytes that reports/tiny.json promises, 1 are not made;"
        " other bytes: models/a/model.safetensors"
    )


def test_nothing_is_promised_for_other_parameters(project):
    profiles.switch("demo")
    assert kept() is None
    profiles.switch("tiny")
    assert kept()
    paths.PROMISE.unlink()
    assert kept() is None


def test_the_profile_tiny_is_portable_and_the_demo_is_not(project):
    assert "portable: true" in Path("params.yaml").read_text()
    profiles.switch("demo")
    assert "portable: false" in Path("params.yaml").read_text()
