"""A stage ends with the process of DVC that runs it, whatever shell is between them."""

import json
import os
import subprocess
import sys
import time

import psutil
import pytest

from tests.runtime.toy import ROOT, events
from wxb.core.errors import WxbError
from wxb.runtime import engine

# Writes DVC's rwlock and runs the toy through a shell, as DVC does.
ENGINE = """
import json, os, pathlib, subprocess, sys
lock = pathlib.Path(".dvc/tmp/rwlock")
lock.parent.mkdir(parents=True)
lock.write_text(json.dumps({"write": {"/out": {"pid": os.getpid(), "cmd": "dvc"}}, "read": {}}))
subprocess.run(["sh", "-c", sys.argv[1]], env={**os.environ, "DVC_STAGE": "toy@slow"})
"""


@pytest.mark.parametrize("has_shell", [False, True])  # some shells replace themselves
def test_a_stage_ends_with_its_engine(project, has_shell):
    command = f"{sys.executable} toy.py slow"
    command = f"{command}; true" if has_shell else f"exec {command}"
    process = subprocess.Popen(
        [sys.executable, "-c", ENGINE, command],
        cwd=project,
        env={**os.environ, "PYTHONPATH": f"{project}{os.pathsep}{ROOT}"},
        stderr=subprocess.DEVNULL,
    )
    events(project, 1)
    descendants = psutil.Process(process.pid).children(recursive=True)
    assert len(descendants) == (2 if has_shell else 1)
    process.kill()
    process.wait()
    assert not psutil.wait_procs(descendants, timeout=20)[1]
    log = (project / "logs/toy@slow.log").read_text()
    assert f"the engine of this stage (process {process.pid}) has ended\ninterrupted" in log
    assert len((project / "events").read_text().splitlines()) < 2
    assert not (project / "reports").exists()


def test_a_further_process_of_a_training_ends_with_the_first(project):
    code = "import subprocess, sys; subprocess.run([sys.executable, 'toy.py', 'slow'])"
    environment = {**os.environ, "PYTHONPATH": f"{project}{os.pathsep}{ROOT}", "RANK": "1"}
    with subprocess.Popen([sys.executable, "-c", code], cwd=project, env=environment) as first:
        events(project, 1)
        further = psutil.Process(first.pid).children()
        first.kill()
    assert not psutil.wait_procs(further, timeout=10)[1]


def write_rwlock(pid):
    engine.RWLOCK.parent.mkdir(parents=True, exist_ok=True)
    content = {"write": {"/out": {"pid": pid, "cmd": "dvc repro"}}, "read": {}}
    engine.RWLOCK.write_text(json.dumps(content))


def test_the_engine_is_the_ancestor_that_dvc_names(cwd, monkeypatch):
    write_rwlock(os.getppid())
    assert engine.find("toy@x") is None  # started by hand
    monkeypatch.setenv("DVC_STAGE", "toy@x")
    assert engine.find("toy@x").pid == os.getppid()
    assert engine.find("toy@y") is None
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    write_rwlock(ended.pid)
    with pytest.raises(WxbError, match=r"the engine of toy@x has ended, so nothing was published"):
        engine.find("toy@x")
    for content in ("", "[]", '{"write": {"/a": 1}}'):
        engine.RWLOCK.write_text(content)
        assert engine.find("toy@x") is None
    engine.RWLOCK.unlink()
    assert engine.find("toy@x") is None


def test_nothing_is_published_without_the_engine():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        watched = psutil.Process(process.pid)
        engine.require_running("toy@x", watched)
        process.kill()
        deadline = time.monotonic() + 20
        while watched.status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < deadline
        with pytest.raises(WxbError):  # nobody has waited for it yet
            engine.require_running("toy@x", watched)
    with pytest.raises(WxbError):
        engine.require_running("toy@x", watched)
