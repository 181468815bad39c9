"""The stages of a small project, with and without a run of DVC."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from dvc.output import Output
from dvc.repo import Repo

from wxb.project import dag
from wxb.project.dag import LOCKFILE, PlanError, steps
from wxb.runtime.engine import RWLOCK

DVC_YAML = """
stages:
  make:
    cmd: "true"
    deps: [source]
    params: [block, other]
    outs: [made]
  use:
    cmd: "true"
    deps: [made/file]
    params: [block]
    outs: [used]
"""


@pytest.fixture
def project(cwd):
    """The working folder: a project with two stages that are up to date."""
    Repo.init(no_scm=True).close()
    Path("dvc.yaml").write_text(DVC_YAML)
    Path("params.yaml").write_text("block: {key: 1}\nother: a")
    Path("made").mkdir()
    for name in ("source", "made/file", "used"):
        Path(name).write_text(name)
    with Repo() as repo:
        repo.commit(force=True)
    return cwd


def lock_paths(*paths, pid):
    """Write an rwlock in which a process is writing these paths."""
    entries = {str(Path.cwd() / path): {"pid": pid, "cmd": "dvc repro"} for path in paths}
    RWLOCK.write_text(json.dumps({"write": entries, "read": {}}))


@pytest.mark.parametrize(
    ("path", "content", "make_changes", "use_changes"),
    [
        ("source", "edited", {"source": "modified"}, {}),
        ("made/file", "edited", {"made": "modified"}, {"made/file": "modified"}),
        ("used", None, {}, {"used": "deleted"}),
        ("dvc.yaml", DVC_YAML.replace('"true"', "echo", 1), {"dvc.yaml": "modified"}, {}),
        ("dvc.yaml", DVC_YAML.replace("[made/file]", "[source]"), {}, {"source": "new"}),
    ],
)
def test_changed_files_are_listed(project, path, content, make_changes, use_changes):
    Path(path).unlink()
    if content is not None:
        Path(path).write_text(content)
    make, use = steps()
    assert (make.changes, use.changes) == (make_changes, use_changes)
    assert (make.is_due, use.is_due) == (bool(make_changes), bool(use_changes))


def test_a_changed_parameter_is_listed_with_its_block(project):
    Path("params.yaml").write_text("block: {key: 2}\nother: a")
    for step in steps():
        assert step.is_due
        assert step.changes == {}
        assert (step.before["block"], step.after["block"]) == ({"key": 1}, {"key": 2})


def test_no_lock_is_needed_or_held(project, monkeypatch):
    status = Output.status
    entries = []

    def status_with_lock(entry):
        with Repo() as other, other.lock:  # raises LockError if it is held
            entries.append(entry)
        assert not RWLOCK.exists()
        return status(entry)

    RWLOCK.unlink()  # left by the commit
    with Repo() as repo, repo.lock:
        assert not any(step.is_due for step in steps())
    monkeypatch.setattr(Output, "status", status_with_lock)
    assert not any(step.is_due for step in steps())
    assert entries


def test_outputs_in_use_mean_running_and_not_changed(project):
    Path("source").write_text("edited")
    Path("made/file").write_text("half")
    lock_paths("made", pid=os.getpid())
    make, use = steps()
    assert make.is_running
    assert make.changes == {"source": "modified"}
    assert not use.is_due
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    lock_paths("made", pid=ended.pid)
    make, use = steps()
    assert not make.is_running
    assert make.changes == {"source": "modified", "made": "modified"}
    assert use.changes == {"made/file": "modified"}


@pytest.mark.parametrize("part", [0.0, 0.3, 0.6, 0.9])
def test_a_half_written_lock_file_is_read_again(project, monkeypatch, part):
    full, read_steps = LOCKFILE.read_text(), dag._steps
    monkeypatch.setattr(dag, "SECONDS_BETWEEN", 0)
    LOCKFILE.write_text(full[: int(part * len(full))])

    def steps_then_write():
        try:
            return read_steps()
        finally:
            if LOCKFILE.read_text() != full:
                LOCKFILE.write_text(full)

    monkeypatch.setattr(dag, "_steps", steps_then_write)
    assert not any(step.is_due for step in steps())


def test_a_project_that_dvc_cannot_read_is_an_error(project):
    Path("dvc.yaml").write_text("stages: [")
    with pytest.raises(PlanError, match=r"DVC cannot read this project: .*dvc\.yaml"):
        steps()
    assert "run `git init`" in str(dag.unreadable_error("/a is not a git repository"))
