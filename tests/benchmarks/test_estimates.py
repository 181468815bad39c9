"""Estimates of trainings stand beside the costs of their last runs."""

import json
from functools import partial

import pytest
from typer.testing import CliRunner

from tests.benchmarks.script import script
from tests.project_copy import ROOT
from wxb.core.errors import WxbError
from wxb.project.estimate.estimate import estimates

module = script("speed/estimates")


@pytest.fixture
def without_trials(monkeypatch):
    """Estimate without trial batches, which take seconds."""
    monkeypatch.setattr(module, "estimates", partial(estimates, timed=False))


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """A project without a run."""
    (tmp_path / "params.yaml").write_text((ROOT / "params.yaml").read_text("utf-8"), "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_each_stage_has_one_row(without_trials, folder):
    costs = {"train/ner-decoder": 20, "train/ner-decoder-lora": 40, "pretrain/decoder": 60}
    for name, seconds in costs.items():
        file = folder / f"reports/cost/{name}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"seconds": seconds, "peak_memory_mib": 500}))
    output = folder / "estimates.json"
    arguments = ["ner-decoder", "ner-decoder-lora", "--output", str(output)]
    result = CliRunner().invoke(module.app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    rows = {row["stage"]: row for row in json.loads(output.read_text())["rows"]}
    assert {stage: row["measured"] for stage, row in rows.items()} == {
        f"`{name.replace('/', '@')}`": seconds for name, seconds in costs.items()
    }
    row = rows["`train@ner-decoder`"]
    assert row["MiB measured"] == 500
    assert 300 < row["MiB estimated"] < 1000


def test_without_a_run_it_says_what_to_do(without_trials, folder):
    result = CliRunner().invoke(module.app, ["ner-encoder"])
    assert isinstance(result.exception, WxbError)
