"""`wxb doctor` finds problems of the machine and the folder, and repairs DVC's files."""

import json
import os
import shutil
import sys
from importlib import metadata
from pathlib import Path

import pytest
import torch
from dvc.repo import Repo

from tests.commands import wxb
from tests.project_copy import BIN, ROOT
from wxb.project import doctor
from wxb.runtime.engine import RWLOCK

NO_NETWORK = """
import socket
def connect(self, address):
    with open({log!r}, "a") as log:
        print(address, file=log)
    raise OSError("there is no network")
socket.socket.connect = connect
"""


@pytest.fixture
def folder(cwd, monkeypatch):
    """The working folder: a project of DVC without stages."""
    monkeypatch.setenv("PATH", f"{BIN}:{os.environ['PATH']}")
    Repo.init(no_scm=True).close()
    Path("requirements.txt").write_text(f"dvc=={metadata.version('dvc')}\n")
    Path("dvc.yaml").write_text("stages: {}")


def levels(check):
    return [finding.level for finding in check()]


def test_a_sound_project_has_no_problem_and_no_network_is_used(folder, tmp_path):
    log = tmp_path / "calls"
    (tmp_path / "sitecustomize.py").write_text(NO_NETWORK.format(log=str(log)))
    process = wxb("doctor", "--json", path=[tmp_path, ROOT])
    report = json.loads(process.stdout)
    assert (process.returncode, report["healthy"]) == (0, True)
    checks = {check["name"]: check["message"] for check in report["checks"]}
    assert [*checks] == ["Python", "packages", "torch", "GPU", "DVC", "disk"]
    assert sys.executable in checks["Python"]
    assert checks["torch"] == torch.__version__
    assert checks["DVC"].startswith(f"{metadata.version('dvc')} reads 0 stages")
    assert not log.exists()


def test_problems_are_printed_with_remedies(folder):
    shutil.rmtree(".dvc")
    Path("requirements.txt").unlink()
    process = wxb("doctor", path=[ROOT], PATH="/nowhere", COLUMNS="80")
    assert process.returncode == 1
    assert max(map(len, process.stdout.splitlines())) <= 80
    assert f"-> {doctor.INSTALL}" in process.stdout
    assert "-> dvc status" in process.stdout


@pytest.mark.parametrize("code", [13, 30])  # forbidden, read-only
def test_a_forbidden_disk_is_no_matter_of_packages(monkeypatch, code):
    def disk():
        raise OSError(code, "", "lock")

    monkeypatch.setattr(doctor, "disk", disk)
    last = [*doctor.examine()][-1]
    assert (last.message.partition(";")[0], last.remedy) == (f"lock: {os.strerror(code)}", "")


@pytest.mark.parametrize(("tool", "level"), [(None, "ok"), ("/usr/bin/nvidia-smi", "note")])
def test_a_gpu_that_torch_cannot_use_is_noted(monkeypatch, tool, level):
    monkeypatch.setattr(doctor.shutil, "which", lambda _: tool)
    assert levels(doctor.torch) == ["ok", level]


def test_another_python_on_the_path_is_a_problem(monkeypatch):
    assert "problem" not in levels(doctor.python)
    monkeypatch.setenv("PATH", "/nowhere")
    *_, finding = doctor.python()
    assert (finding.level, str(Path(sys.executable).parent) in finding.remedy) == ("problem", True)


@pytest.mark.parametrize(
    ("lock", "level", "part"),
    [
        (f"torch=={torch.__version__.partition('+')[0]}\nPyYAML==VERSION", "ok", ""),
        ("pytest==0.1", "note", f"pytest {metadata.version('pytest')} (locked: 0.1)"),
        ("pytest==0.1\nno-such-package==1.0", "problem", "no-such-package is missing"),
        ("".join(f"absent-{i}==1\n" for i in range(9)), "problem", "and 3 more"),
    ],
)
def test_packages_are_compared_with_the_lock(folder, lock, level, part):
    Path("requirements.txt").write_text(lock.replace("VERSION", metadata.version("pyyaml")))
    (finding,) = doctor.packages()
    assert (finding.level, part in finding.message) == (level, True)


def test_files_of_dvc_are_repaired_unless_a_run_is_active(folder):
    assert levels(doctor.repair_dvc) == ["ok"]
    RWLOCK.write_text("{")
    with Repo() as repo, repo.lock:
        assert levels(doctor.repair_dvc) == ["note", "note"]
    assert levels(doctor.repair_dvc) == ["ok"]
    Path("dvc.yaml").write_text("stages: [")
    assert levels(doctor.repair_dvc) == ["problem"]
