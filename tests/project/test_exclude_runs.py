"""Commands that change params.yaml fail while a run is active."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from dvc.repo import Repo
from typer.testing import CliRunner

from tests.commands import sleeping_process
from tests.project_copy import ROOT
from wxb.cli.app import app
from wxb.core.params import PARAMS, load, read_yaml
from wxb.project import params_file
from wxb.project.engines import PlanError, repaired

ACTIVE = r"params.yaml was not changed: a run of dvc or snakemake is active in this project"
# A stage that runs until the file `hold` is removed.
DVC_YAML = """stages:
  train:
    cmd: touch started; while [ -e hold ]; do sleep 0.1; done; touch out
    outs: [out]
"""
SNAKEMAKE = """
import sys
from wxb.project.engines import run_folder
folder = run_folder(sys.argv[2])
print("started", flush=True)
input()
"""


@pytest.fixture
def project(params):
    """A project of DVC with the parameters and profiles of this one."""
    Repo.init(no_scm=True).close()


def assert_commands_fail():
    before = Path("params.yaml").read_bytes()
    for arguments in (["params", "tiny"], ["new", "study", "x", "--corpus", "pii"]):
        failed = CliRunner().invoke(app, arguments)
        assert failed.exit_code == 1
        with pytest.raises(PlanError, match=ACTIVE):
            raise failed.exception
    assert Path("params.yaml").read_bytes() == before
    assert CliRunner().invoke(app, ["new", "study", "x", "--corpus", "pii", "--dry-run"]).stdout


def test_commands_fail_while_dvc_runs_a_stage(project):
    Path("dvc.yaml").write_text(DVC_YAML)
    Path("hold").touch()
    environment = {**os.environ, "DVC_NO_ANALYTICS": "1"}
    dvc = subprocess.Popen([sys.executable, "-m", "dvc", "repro"], env=environment)
    deadline = time.monotonic() + 100
    while not Path("started").exists():
        assert time.monotonic() < deadline
        assert dvc.poll() is None
        time.sleep(0.1)
    try:
        assert_commands_fail()
    finally:
        Path("hold").unlink()
        dvc.wait()
    assert CliRunner().invoke(app, ["params", "tiny"]).exit_code == 0
    assert load().portable


@pytest.mark.parametrize("kind", ["run", "read"])
def test_commands_fail_between_two_jobs_of_snakemake(project, kind):
    command = [sys.executable, "-c", SNAKEMAKE, "snakemake", kind]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    snakemake = subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert snakemake.stdout.readline() == "started\n"
        if kind == "run":
            assert_commands_fail()
        else:  # a dry run only reads
            params_file.write(read_yaml(PARAMS))
    finally:
        snakemake.kill()  # leaves its folder
        snakemake.communicate()
    assert len([*Path(".snakemake").iterdir()]) == 1
    params_file.write(read_yaml(PARAMS))


def test_the_file_of_a_plain_lock_counts_only_while_a_process_holds_it(project):
    Path(".dvc/config.local").write_text("[core]\n    hardlink_lock = true\n")
    with sleeping_process() as pid:
        Path(".dvc/tmp/lock").write_text(f" {pid}\n")
        with pytest.raises(PlanError, match=r"holds DVC's lock .dvc/tmp/lock"):
            params_file.write(read_yaml(PARAMS))
    params_file.write(read_yaml(PARAMS))
    Path(".dvc/tmp/rwlock").write_text("{")
    with repaired(print):
        assert not Path(".dvc/tmp/rwlock.lock").exists()


def test_locks_of_other_nodes_are_left_to_an_active_run(project, monkeypatch):
    """The processes of a Slurm run that DVC's rwlock names do not run here."""
    content = '{"write": {"/a": {"pid": 99999999, "cmd": "dvc repro"}}}'
    Path(".dvc/tmp/rwlock").write_text(content)
    with monkeypatch.context() as patch:
        patch.setattr("wxb.project.engines._snakemake_pids", lambda: iter([os.getpid()]))
        with pytest.raises(PlanError), repaired(print):
            pass
    assert Path(".dvc/tmp/rwlock").read_text() == content
