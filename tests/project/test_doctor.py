"""`wxb doctor` finds problems, and its commands repair them."""

import json
import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import torch
from dvc.repo import Repo

from tests.commands import sleeping_process, wxb
from tests.project_copy import BIN
from tests.project_copy import Project as Folder
from wxb.core.params import load
from wxb.project.doctor import examine, libraries, machine, project

NO_NETWORK = """
import socket
def connect(self, address):
    with open({log!r}, "a") as log:
        print(address, file=log)
    raise OSError("there is no network")
socket.socket.connect = connect
"""


@pytest.fixture(scope="module")
def new_project(tmp_path_factory):
    folder = Folder(tmp_path_factory.mktemp("doctor") / "project").folder
    shutil.rmtree(folder / "tests")
    return folder


@pytest.fixture
def folder(new_project, tmp_path, monkeypatch):
    """The working folder: a project without outputs, and an empty home."""
    copy = tmp_path / "project"
    shutil.copytree(new_project, copy)
    monkeypatch.chdir(copy)
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("PATH", f"{BIN}:{os.environ['PATH']}")
    return copy


def levels(findings):
    return [finding.level for finding in findings]


def test_a_sound_project_has_no_problem(folder, tmp_path):
    log = tmp_path / "calls"
    (tmp_path / "sitecustomize.py").write_text(NO_NETWORK.format(log=str(log)))
    before = {path: path.stat().st_mtime_ns for path in files(folder)}
    process = wxb("doctor", "--json", path=[tmp_path], HF_TOKEN="hf_very_secret")
    report = json.loads(process.stdout)
    problems = [check for check in report["checks"] if check["level"] == "problem"]
    assert problems == []
    assert (process.returncode, report["healthy"]) == (0, True)
    checks = {check["name"]: check["message"] for check in report["checks"]}
    assert checks["torch"] == torch.__version__
    assert checks["dvc"] == metadata.version("dvc")
    assert checks["snakemake"] == metadata.version("snakemake")
    assert checks["params.yaml"] == "valid, profile tiny"
    assert checks["hub token"] == "there is one, from HF_TOKEN"
    assert "work on the" in checks["bitsandbytes"]
    assert "very_secret" not in process.stdout + process.stderr
    assert not log.exists(), "the network was used"
    after = {path: path.stat().st_mtime_ns for path in files(folder)}
    assert after == before, "a file was changed"


def files(folder):
    """All files except DVC's own."""
    private = (folder / ".dvc/tmp", folder / ".dvc/cache")
    paths = [
        path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in str(path)
    ]
    return [path for path in paths if not any(path.is_relative_to(top) for top in private)]


@pytest.mark.slow
def test_all_problems_are_printed_with_remedies(folder):
    text = Path("params.yaml").read_text().replace("threads:", "thread:")
    Path("params.yaml").write_text(text)
    shutil.rmtree(folder / ".git")
    process = wxb("doctor", PATH="/nowhere")
    assert process.returncode == 1
    assert "\x1b" not in process.stdout
    assert max(map(len, process.stdout.splitlines())) <= 80
    words = " ".join(process.stdout.split())
    assert "did you mean 'threads'" in words
    assert "-> git init" in words
    assert "is not found -> " in words
    assert "telemetry off" in words
    subprocess.run(["git", "init", "-q"], check=True)
    assert levels(project.repository()) == ["ok"]


@pytest.mark.slow
def test_outside_a_project_the_remedy_is_its_root(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    process = wxb("doctor", "--json", path=[Path(project.__file__).parents[2]])
    assert process.returncode == 1
    checks = {check["name"]: check for check in json.loads(process.stdout)["checks"]}
    for name in ("params.yaml", "repository"):
        assert checks[name]["level"] == "problem"
        assert checks[name]["remedy"] == "cd to the project's root"


@pytest.mark.slow
def test_a_check_that_raises_is_a_problem(folder, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", None, raising=False)
    findings = {finding.name: finding for finding in examine()}
    assert findings["CPU"].level == "problem"
    assert "TypeError" in findings["CPU"].message
    assert findings["telemetry"].level == "ok"


def test_packages_are_compared_with_the_lock(folder):
    lock = Path("requirements.txt")
    torch_release = metadata.version("torch").partition("+")[0]
    lock.write_text(f"torch=={torch_release}\nPyYAML=={metadata.version('pyyaml')}\n")
    assert levels(project.packages()) == ["ok"]
    lock.write_text("pytest==0.1\nno-such-package==1.0\n")
    (finding,) = project.packages()
    assert finding.level == "note", "wxb does not require them"
    assert "no-such-package is missing" in finding.message
    assert f"pytest {metadata.version('pytest')} (locked: 0.1)" in finding.message
    lock.write_text("".join(f"absent-{index}==1\n" for index in range(9)))
    (finding,) = project.packages()
    assert "and 3 more" in finding.message


def test_a_package_that_wxb_needs_is_a_problem(folder, tmp_path, monkeypatch):
    dist_info = tmp_path / "modules/wxb-9.dist-info"
    dist_info.mkdir(parents=True)
    required = "Requires-Dist: No_such.package\nRequires-Dist: pyyaml>=1000\n"
    optional = 'Requires-Dist: absent; extra == "dev"\n'
    (dist_info / "METADATA").write_text(f"Name: wxb\nVersion: 9\n{required}{optional}")
    monkeypatch.syspath_prepend(dist_info.parent)
    for locked, level in {
        "no-such-package==1": "problem",
        "PyYAML==1001": "problem",
        "absent==1": "note",
    }.items():
        Path("requirements.txt").write_text(locked)
        assert levels(project.packages()) == [level], locked


def test_the_nearest_profile_is_named(folder):
    text = Path("params.yaml").read_text()
    Path("params.yaml").write_text(text.replace("epochs: 8", "epochs: 9", 1))
    (finding,) = project.parameters("")
    assert finding.message == "valid, profile tiny with changes (keys that differ: 1)"


def test_wxb_from_another_folder_is_noted(folder):
    (finding,) = project.package()
    assert finding.level == "note"
    assert str(folder / "wxb") in finding.message


def test_threads_beyond_the_cores_are_noted(folder):
    assert levels(machine.cpu(load())) == ["ok"]
    many = load().model_copy(update={"threads": 4096})
    assert levels(machine.cpu(many)) == ["note"]


def test_a_folder_that_cannot_be_written_to_is_a_problem(monkeypatch):
    monkeypatch.chdir("/proc")
    problems = [finding for finding in machine.disk(None) if finding.level == "problem"]
    assert "/proc cannot be written to" in problems[0].message


def test_hub_findings_depend_on_params(folder, tmp_path, monkeypatch):
    token = tmp_path / "token"
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(token))
    local, full = load(), load()
    backbones = dict(full.backbones)
    backbones["encoder"] = full.backbones["encoder"].model_copy(update={"checkpoint": "org/model"})
    full = full.model_copy(update={"backbones": backbones})
    assert levels(machine.hub(local)) == ["ok", "ok"]
    missing, _ = machine.hub(full)
    assert (missing.level, missing.remedy) == ("note", "hf auth login")
    assert "org/model" in missing.message
    token.write_text("hf_very_secret\n")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    token_finding, offline = machine.hub(full)
    assert (token_finding.level, token_finding.message) == ("ok", f"there is one, from {token}")
    assert (offline.level, offline.remedy) == ("note", "unset HF_HUB_OFFLINE")
    assert "secret" not in repr((token_finding, offline))


def write_rwlock(content):
    path = Path(".dvc/tmp/rwlock")
    path.parent.mkdir(exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_dvc_locks_depend_on_their_processes(folder):
    assert levels(project.locks()) == ["ok"]
    with subprocess.Popen([sys.executable, "-c", "pass"]) as dead:
        pass
    entry = {"pid": dead.pid, "cmd": "dvc repro"}
    write_rwlock({"write": {"/a": entry}, "read": {"/b": [entry, entry]}})
    (finding,) = project.locks()
    assert finding.level == "note"
    assert str(dead.pid) in finding.message

    with sleeping_process("/dvc/snakemake/wxb/another") as other, sleeping_process("dvc") as run:
        path = write_rwlock({"read": {"/a": [{"pid": other, "cmd": "dvc repro"}]}})
        (finding,) = project.locks()
        assert (finding.level, finding.remedy) == ("problem", f"rm {path}")
        write_rwlock({"write": {"/a": {"pid": run, "cmd": "dvc repro"}}})
        (finding,) = project.locks()
        assert finding.level == "note"


def test_what_a_killed_run_left_is_repaired(folder):
    assert levels(project.repository()) == ["ok"]
    full, empty = Path(".dvc/cache/runs/aa/aa1/run"), Path(".dvc/cache/runs/bb/bb2")
    full.parent.mkdir(parents=True)
    full.write_text("cmd: true\n")
    empty.mkdir(parents=True)
    path = write_rwlock("{")
    rwlock, run_cache, _ = project.repository()
    assert (rwlock.level, run_cache.level) == ("note", "note")
    assert rwlock.message.startswith(f"{path} was damaged")
    assert str(empty) in run_cache.message
    assert levels(project.repository()) == ["ok"]
    assert full.exists()
    with Repo() as repo, repo.lock:
        active, stages = project.repository()
    assert active.message.startswith("nothing was repaired: a run of dvc or snakemake is active")
    assert (active.name, stages.name, stages.level) == ("repairs", "repository", "ok")


@pytest.mark.slow
def test_the_remedy_removes_a_lock_of_snakemake(folder):
    locks = Path(".snakemake/locks")
    locks.mkdir(parents=True)
    (locks / "0.output.lock").write_text("out\n")
    (finding,) = project.locks()
    assert finding.level == "problem"
    with sleeping_process("/snakemake/another"):
        (other,) = project.locks()
    assert other.level == "problem"
    with sleeping_process("snakemake"):
        (other,) = project.locks()
    assert other.level == "note"
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    subprocess.run(finding.remedy.split(), env=environment, capture_output=True, check=True)
    assert levels(project.locks()) == ["ok"]


def test_enabled_telemetry_is_a_problem(folder):
    assert levels(project.telemetry()) == ["ok"]
    Path(".dvc/config").write_text("[core]\n    analytics = true\n    check_update = false\n")
    (finding,) = project.telemetry()
    assert finding.level == "problem"
    subprocess.run(finding.remedy.split(), check=True)
    assert levels(project.telemetry()) == ["ok"]


def test_an_engine_that_does_not_run_is_a_problem(folder, tmp_path, monkeypatch):
    (tmp_path / "dvc").mkdir()
    (tmp_path / "dvc/__init__.py").write_text("raise ImportError('no module of that kind')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with libraries.library_check(None) as check:
        dvc, snakemake, *_ = check()
    assert (dvc.level, snakemake.level) == ("problem", "ok")
    assert "no module of that kind" in dvc.message


def test_libraries_that_kill_their_process_are_a_problem(folder, tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text("import os\nos.kill(os.getpid(), 4)  # SIGILL\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    with libraries.library_check(None) as check:
        dvc, snakemake, finding = check()
    assert (dvc.level, snakemake.level, finding.level) == ("ok", "ok", "problem")
    assert "ended by SIGILL" in finding.message


def test_the_gpu_is_named_or_the_reason_for_none():
    finding, *_ = libraries.gpu()
    name = torch.cuda.is_available() and torch.cuda.get_device_name(0)
    assert (name or "no") in finding.message
    assert finding.level in ("ok", "note")
