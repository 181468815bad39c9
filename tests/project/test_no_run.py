"""What changes params.yaml, or removes files, refuses while a run is at work in the project."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from dvc.repo import Repo
from typer.testing import CliRunner

from wxb.cli.app import app
from wxb.core.params import load
from wxb.project import params_file
from wxb.project.engines import PlanError, no_run

ROOT = Path(__file__).parents[2]
AT_WORK = r"params.yaml was not changed: a run of dvc or snakemake is at work in this project"
# A stage that lasts as long as the file `hold` is there.
DVC_YAML = """stages:
  train:
    cmd: touch began; while [ -e hold ]; do sleep 0.1; done; touch out
    outs: [out]
"""
SNAKEMAKE = """
import sys
from wxb.project.engines import folder_of_run
held = folder_of_run(sys.argv[2])
print("began", flush=True)
input()
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project of DVC with the parameters and profiles of this one."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "params", "params")
    shutil.copy(ROOT / "params.yaml", "params.yaml")
    Repo.init(no_scm=True).close()
    return tmp_path


def assert_refused():
    before = Path("params.yaml").read_bytes()
    for arguments in (["params", "tiny"], ["new", "study", "x", "--corpus", "pii"]):
        failed = CliRunner().invoke(app, arguments)
        assert failed.exit_code == 1
        with pytest.raises(PlanError, match=AT_WORK):
            raise failed.exception
    assert Path("params.yaml").read_bytes() == before
    left = Path("models/old")
    left.mkdir(parents=True)
    failed = CliRunner().invoke(app, ["clean"])
    assert "nothing was removed: a run of dvc" in str(failed.exception)
    assert left.exists()
    assert "models/old" in CliRunner().invoke(app, ["clean", "--dry-run"]).stdout
    assert CliRunner().invoke(app, ["new", "study", "x", "--corpus", "pii", "--dry-run"]).stdout
    left.rmdir()


def test_while_dvc_runs_a_stage(project):
    Path("dvc.yaml").write_text(DVC_YAML)
    Path("hold").touch()
    environment = {**os.environ, "DVC_NO_ANALYTICS": "1"}
    dvc = subprocess.Popen([sys.executable, "-m", "dvc", "repro"], env=environment)
    deadline = time.monotonic() + 100
    while not Path("began").exists():
        assert time.monotonic() < deadline
        assert dvc.poll() is None
        time.sleep(0.1)
    try:
        assert_refused()
    finally:
        Path("hold").unlink()
        dvc.wait()
    assert CliRunner().invoke(app, ["params", "tiny"]).exit_code == 0
    assert load().resamples == 100


def test_while_dvc_keeps_its_lock(project):
    text = params_file.read()
    with Repo() as repo, repo.lock, pytest.raises(PlanError, match=r"it keeps DVC's lock"):
        params_file.write(text)
    params_file.write(text)


@pytest.mark.parametrize("kind", ["run", "look"])
def test_between_two_jobs_of_snakemake(project, kind):
    command = [sys.executable, "-c", SNAKEMAKE, "snakemake", kind]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    snakemake = subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert snakemake.stdout.readline() == "began\n"
        if kind == "run":
            assert_refused()
        else:  # a dry run, which reads alone
            params_file.write(params_file.read())
    finally:
        snakemake.kill()  # its folder stays
        snakemake.communicate()
    assert len([*Path(".snakemake").iterdir()]) == 1
    params_file.write(params_file.read())


def test_without_dvc_nothing_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with no_run() as repo:
        assert repo is None
