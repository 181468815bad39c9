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


def test_each_stage_has_one_row(without_trials, monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    file = tmp_path / "estimates.json"
    names = ["ner-decoder", "ner-decoder-lora"]
    assert CliRunner().invoke(module.app, [*names, "--output", str(file)]).exit_code == 0
    rows = {row["stage"]: row for row in json.loads(file.read_text())["rows"]}
    trained = [*(f"`train@{name}`" for name in names), "`pretrain@decoder`"]
    assert sorted(rows) == sorted(trained)
    cost = json.loads((ROOT / "reports/cost/train/ner-decoder.json").read_text())
    row = rows["`train@ner-decoder`"]
    assert (row["measured"], row["MiB measured"]) == (cost["seconds"], cost["peak_memory_mib"])
    assert 300 < row["MiB estimated"] < 1000


def test_without_a_run_it_says_what_to_do(without_trials, monkeypatch, tmp_path):
    (tmp_path / "params.yaml").write_text((ROOT / "params.yaml").read_text("utf-8"), "utf-8")
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(module.app, ["ner-encoder"])
    assert isinstance(result.exception, WxbError)
