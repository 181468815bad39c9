"""Files are compared with the hashes in reports/tiny.json."""

import json
import shutil
from pathlib import Path

import pytest

from tests.repository import write
from wxb.core import paths
from wxb.core.files import write_json
from wxb.core.params import load
from wxb.project import profiles
from wxb.project.reproduction.expected_hashes import check_hashes, current_hashes

ROOT = Path(__file__).parents[3]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project of the profile tiny with two models and a metrics file that have their hashes."""
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
    write("models/ner-decoder-qlora/head.safetensors", "bytes that the CPU decides")
    write("reports/metrics/ner/ner-decoder-qlora.json", "{}")
    write("reports/metrics/reviews/b.json", "the metrics of a study of another profile")
    write("reports/cost/evaluate/b.json", "{}")
    write("models/.gitignore", "/a\n/b\n")
    write_json(paths.EXPECTED_HASHES, current_hashes())


def test_equal_files(project):
    assert json.loads(paths.EXPECTED_HASHES.read_text())["files"].keys() == {
        "models/a/model.safetensors",
        "models/b/config.json",
        "reports/metrics/ner/b.json",
    }
    assert check_hashes() == (3, [], [])


def test_missing_and_differing_files_are_listed(project):
    write("models/a/model.safetensors", "other bytes")
    write("models/c/more.json", "not expected")
    Path("models/b/config.json").unlink()
    assert check_hashes() == (3, ["models/b/config.json"], ["models/a/model.safetensors"])
    assert "1 of 2 files" in check_hashes().line
    assert "models/a/model.safetensors" in check_hashes().line


def test_committed_metrics_that_no_run_wrote_here_are_not_compared(project):
    write("reports/metrics/ner/b.json", "committed metrics of other parameters")
    assert check_hashes() == (3, [], ["reports/metrics/ner/b.json"])
    Path("reports/cost/evaluate/b.json").unlink()
    assert check_hashes() == (3, ["reports/metrics/ner/b.json"], [])


def test_other_parameters_have_no_expected_hashes(project):
    assert load().portable
    profiles.switch("demo")
    assert not load().portable
    assert check_hashes() is None
    profiles.switch("tiny")
    assert check_hashes()
    paths.EXPECTED_HASHES.unlink()
    assert check_hashes() is None
