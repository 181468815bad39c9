"""`wxb doctor` finds what is wrong, and the commands that it tells mend it."""

import json
import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import torch

from tests.commands import asleep, wxb
from tests.copied import BIN
from tests.copied import Project as Folder
from wxb.core.params import load
from wxb.project.doctor import examine, libraries, machine, project

NO_NETWORK = """
import socket
def refuse(self, address):
    with open({log!r}, "a") as log:
        print(address, file=log)
    raise OSError("there is no network")
socket.socket.connect = refuse
"""


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    folder = Folder(tmp_path_factory.mktemp("doctor") / "pristine").folder
    shutil.rmtree(folder / "tests")
    return folder


@pytest.fixture
def folder(pristine, tmp_path, monkeypatch):
    """The working folder: a project with nothing made yet, and an empty home."""
    copy = tmp_path / "project"
    shutil.copytree(pristine, copy)
    monkeypatch.chdir(copy)
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("PATH", f"{BIN}:{os.environ['PATH']}")
    return copy


def levels(findings):
    return [finding.level for finding in findings]


def test_a_sound_project_is_well(folder, tmp_path):
    log = tmp_path / "calls"
    (tmp_path / "sitecustomize.py").write_text(NO_NETWORK.format(log=str(log)))
    before = {path: path.stat().st_mtime_ns for path in files(folder)}
    told = wxb("doctor", "--json", path=[tmp_path], HF_TOKEN="hf_very_secret")
    report = json.loads(told.stdout)
    problems = [check for check in report["checks"] if check["level"] == "problem"]
    assert problems == []
    assert (told.returncode, report["healthy"]) == (0, True)
    checks = {check["name"]: check["found"] for check in report["checks"]}
    assert checks["torch"] == torch.__version__
    assert checks["dvc"] == metadata.version("dvc")
    assert checks["snakemake"] == metadata.version("snakemake")
    assert checks["params.yaml"] == "valid, with the sizes of tiny"
    assert checks["hub token"] == "there is one, from HF_TOKEN"
    assert "work on the" in checks["bitsandbytes"]
    assert "very_secret" not in told.stdout + told.stderr
    assert not log.exists(), "the network was asked"
    after = {path: path.stat().st_mtime_ns for path in files(folder)}
    assert after == before, "something was changed"


def files(folder):
    """All files but those that DVC keeps for itself."""
    private = (folder / ".dvc/tmp", folder / ".dvc/cache")
    found = [
        path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in str(path)
    ]
    return [path for path in found if not any(path.is_relative_to(top) for top in private)]


def test_a_problem_is_told_with_its_cure_and_hides_no_other(folder):
    text = Path("params.yaml").read_text().replace("threads:", "thread:")
    Path("params.yaml").write_text(text)
    shutil.rmtree(folder / ".git")
    told = wxb("doctor", PATH="/nowhere")
    assert told.returncode == 1
    assert "\x1b" not in told.stdout
    assert max(map(len, told.stdout.splitlines())) <= 80
    words = " ".join(told.stdout.split())
    assert "did you mean 'threads'" in words
    assert "-> git init" in words
    assert "is not found -> " in words
    assert "telemetry off" in words
    subprocess.run(["git", "init", "-q"], check=True)
    assert levels(project.repository()) == ["ok"]


def test_outside_a_project_it_says_where_to_go(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = wxb("doctor", "--json", path=[Path(project.__file__).parents[2]])
    assert told.returncode == 1
    checks = {check["name"]: check for check in json.loads(told.stdout)["checks"]}
    for name in ("params.yaml", "repository"):
        assert checks[name]["level"] == "problem"
        assert checks[name]["mend"] == "cd to the project's root"


def test_a_check_that_breaks_down_is_a_problem(folder, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", None, raising=False)
    findings = {finding.name: finding for finding in examine()}
    assert findings["CPU"].level == "problem"
    assert "TypeError" in findings["CPU"].found
    assert findings["telemetry"].level == "ok"


def test_packages_are_compared_with_the_lock(folder):
    lock = Path("requirements.txt")
    torch_release = metadata.version("torch").partition("+")[0]
    lock.write_text(f"torch=={torch_release}\nPyYAML=={metadata.version('pyyaml')}\n")
    assert levels(project.packages()) == ["ok"]
    lock.write_text("pytest==0.1\nno-such-package==1.0\n")
    (finding,) = project.packages()
    assert finding.level == "note", "wxb runs without them"
    assert "no-such-package is missing" in finding.found
    assert f"pytest {metadata.version('pytest')} (locked: 0.1)" in finding.found
    lock.write_text("".join(f"absent-{number}==1\n" for number in range(9)))
    (finding,) = project.packages()
    assert "and 3 more" in finding.found


def test_a_package_that_wxb_needs_is_a_problem(folder, tmp_path, monkeypatch):
    about = tmp_path / "modules/wxb-9.dist-info"
    about.mkdir(parents=True)
    asked = "Requires-Dist: No_such.package\nRequires-Dist: pyyaml>=1000\n"
    optional = 'Requires-Dist: absent; extra == "dev"\n'
    (about / "METADATA").write_text(f"Name: wxb\nVersion: 9\n{asked}{optional}")
    monkeypatch.syspath_prepend(about.parent)
    for locked, level in {
        "no-such-package==1": "problem",
        "PyYAML==1001": "problem",
        "absent==1": "note",
    }.items():
        Path("requirements.txt").write_text(locked)
        assert levels(project.packages()) == [level], locked


def test_the_profile_is_named_or_the_nearest(folder):
    text = Path("params.yaml").read_text()
    Path("params.yaml").write_text(text.replace("resamples: ", "resamples: 1", 1))
    (finding,) = project.parameters("")
    assert finding.found == "valid, with sizes of its own (keys that differ from tiny: 1)"


def test_wxb_from_elsewhere_is_noted(folder):
    (finding,) = project.package()
    assert finding.level == "note"
    assert str(folder / "wxb") in finding.found


def test_threads_beyond_the_cores_are_noted(folder):
    assert levels(machine.cpu(load())) == ["ok"]
    many = load().model_copy(update={"threads": 4096})
    assert levels(machine.cpu(many)) == ["note"]


def test_a_folder_that_cannot_be_written_to_is_a_problem(monkeypatch):
    monkeypatch.chdir("/proc")
    found = [finding for finding in machine.disk(None) if finding.level == "problem"]
    assert "/proc cannot be written to" in found[0].found


def test_the_hub_is_looked_at_where_params_name_it(folder, tmp_path, monkeypatch):
    token = tmp_path / "token"
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(token))
    local, full = load(), load()
    backbones = dict(full.backbones)
    backbones["encoder"] = full.backbones["encoder"].model_copy(update={"checkpoint": "org/model"})
    full = full.model_copy(update={"backbones": backbones})
    assert levels(machine.hub(local)) == ["ok", "ok"]
    missing, _ = machine.hub(full)
    assert (missing.level, missing.mend) == ("note", "hf auth login")
    assert "org/model" in missing.found
    token.write_text("hf_very_secret\n")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    there, offline = machine.hub(full)
    assert (there.level, there.found) == ("ok", f"there is one, from {token}")
    assert (offline.level, offline.mend) == ("note", "unset HF_HUB_OFFLINE")
    assert "secret" not in repr((there, offline))


def lock(content):
    path = Path(".dvc/tmp/rwlock")
    path.parent.mkdir(exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_locks_of_dvc_are_told_by_who_holds_them(folder):
    assert levels(project.locks()) == ["ok"]
    with subprocess.Popen([sys.executable, "-c", "pass"]) as dead:
        pass
    entry = {"pid": dead.pid, "cmd": "dvc repro"}
    lock({"write": {"/a": entry}, "read": {"/b": [entry, entry]}})
    (finding,) = project.locks()
    assert finding.level == "note"
    assert str(dead.pid) in finding.found

    with asleep("/dvc/snakemake/wxb/another") as other, asleep("dvc") as run:
        path = lock({"read": {"/a": [{"pid": other, "cmd": "dvc repro"}]}})
        (finding,) = project.locks()
        assert (finding.level, finding.mend) == ("problem", f"rm {path}")
        lock({"write": {"/a": {"pid": run, "cmd": "dvc repro"}}})
        (finding,) = project.locks()
        assert finding.level == "note"

    lock("{")
    (finding,) = project.locks()
    assert finding.level == "problem"
    subprocess.run(finding.mend.split(), check=True)
    assert levels(project.locks()) == ["ok"]


def test_a_gap_in_the_run_cache_is_mended_by_what_is_told(folder):
    assert levels(project.run_cache()) == []
    full, gap = Path(".dvc/cache/runs/aa/aa1/run"), Path(".dvc/cache/runs/bb/bb2")
    full.parent.mkdir(parents=True)
    full.write_text("cmd: true\n")
    gap.mkdir(parents=True)
    (finding,) = project.run_cache()
    assert finding.level == "problem"
    assert str(gap) in finding.found
    subprocess.run(finding.mend.split(), check=True)
    assert levels(project.run_cache()) == []
    assert full.exists()


def test_a_lock_that_snakemake_left_is_mended_by_what_is_told(folder):
    locks = Path(".snakemake/locks")
    locks.mkdir(parents=True)
    (locks / "0.output.lock").write_text("out\n")
    (finding,) = project.locks()
    assert finding.level == "problem"
    with asleep("/snakemake/another"):
        (other,) = project.locks()
    assert other.level == "problem"
    with asleep("snakemake"):
        (other,) = project.locks()
    assert other.level == "note"
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    subprocess.run(finding.mend.split(), env=environment, capture_output=True, check=True)
    assert levels(project.locks()) == ["ok"]


def test_telemetry_is_off_or_a_problem(folder):
    assert levels(project.telemetry()) == ["ok"]
    Path(".dvc/config").write_text("[core]\n    analytics = true\n    check_update = false\n")
    (finding,) = project.telemetry()
    assert finding.level == "problem"
    subprocess.run(finding.mend.split(), check=True)
    assert levels(project.telemetry()) == ["ok"]


def test_an_engine_that_does_not_run_is_a_problem(folder, tmp_path, monkeypatch):
    (tmp_path / "dvc").mkdir()
    (tmp_path / "dvc/__init__.py").write_text("raise ImportError('no module of that kind')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with project.engines() as heard:
        dvc, snakemake = heard()
    assert (dvc.level, snakemake.level) == ("problem", "ok")
    assert "no module of that kind" in dvc.found


def test_libraries_that_end_their_process_are_a_problem(folder, tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text("import os\nos.kill(os.getpid(), 4)  # an instruction\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    with libraries.tried() as heard:
        (finding,) = heard()
    assert finding.level == "problem"
    assert "ended by SIGILL" in finding.found


def test_the_gpu_is_named_or_why_there_is_none():
    finding, *_ = libraries.gpu()
    named = torch.cuda.is_available() and torch.cuda.get_device_name(0)
    assert (named or "no") in finding.found
    assert finding.level in ("ok", "note")
