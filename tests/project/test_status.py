"""The stages of a small project, with and without a run of DVC."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from dvc.output import Output
from dvc.repo import Repo

from tests.repository import edit
from wxb.project import status
from wxb.project.status import LOCKFILE, PlanError, steps
from wxb.runtime.engine import RWLOCK


@pytest.fixture
def project(toy_project):
    """The working folder: a project whose second stage depends on a file in an output."""
    edit("dvc.yaml", "params: [rate]", "params: [rate, block]")
    edit("dvc.yaml", "deps: [made]", "deps: [made/file]\n    params: [block]")
    edit("params.yaml", "rate: 1", "rate: 1\nblock: {key: 1}")
    with Repo() as repo:
        repo.commit(force=True)


def lock_paths(*paths, pid):
    """Write an rwlock in which a process is writing these paths."""
    entries = {str(Path.cwd() / path): {"pid": pid, "cmd": "dvc repro"} for path in paths}
    RWLOCK.write_text(json.dumps({"write": entries, "read": {}}))


@pytest.mark.parametrize(
    ("path", "old", "new", "make_changes", "use_changes"),
    [
        ("source", "a source", "edited", {"source": "modified"}, {}),
        ("made/file", "a source", "edited", {"made": "modified"}, {"made/file": "modified"}),
        ("used", "", None, {}, {"used": "deleted"}),
        ("dvc.yaml", "mkdir -p made", "true", {"dvc.yaml": "modified"}, {}),
        ("dvc.yaml", "deps: [made/file]", "deps: [source]", {}, {"source": "new"}),
    ],
)
def test_changed_files_are_listed(project, path, old, new, make_changes, use_changes):
    if new is None:
        Path(path).unlink()
    else:
        edit(path, old, new)
    make, use, _ = steps()
    assert (make.changes, use.changes) == (make_changes, use_changes)
    assert (make.is_due, use.is_due) == (bool(make_changes), bool(use_changes))


def test_a_folder_that_lacks_an_output_is_absent_not_modified(project):
    edit("dvc.yaml", "outs: [used]", "outs: [parts/used]")
    edit("dvc.yaml", "deps: [used]", "deps: [parts]")
    Path("parts").mkdir()
    Path("used").rename("parts/used")
    with Repo() as repo:
        repo.commit(force=True)
    Path("parts/used").unlink()  # `dvc checkout --allow-missing` leaves an empty folder
    assert steps()[2].changes == {"parts": "deleted"}
    assert not status.staleness().is_stale("score")


def test_a_changed_parameter_is_listed_with_its_block(project):
    edit("params.yaml", "key: 1", "key: 2")
    for step in steps()[:2]:
        assert step.is_due
        assert step.changes == {}
        assert (step.before["block"], step.after["block"]) == ({"key": 1}, {"key": 2})


def test_a_stage_that_has_never_run_does_not_list_its_parameters(project):
    edit("dvc.yaml", "  use:", "  renamed:")
    changes = dict(status.staleness().changes["renamed"])
    assert changes["params.yaml"] == "new"
    assert "block.key" not in changes


def test_no_lock_is_needed_or_held(project, monkeypatch):
    own_status = Output.status
    entries = []

    def status_with_lock(entry):
        with Repo() as other, other.lock:  # raises LockError if it is held
            entries.append(entry)
        assert not RWLOCK.exists()
        return own_status(entry)

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
    make, use, _ = steps()
    assert make.is_running
    assert make.changes == {"source": "modified"}
    assert not use.is_due
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    lock_paths("made", pid=ended.pid)
    make, use, _ = steps()
    assert not make.is_running
    assert make.changes == {"source": "modified", "made": "modified"}
    assert use.changes == {"made/file": "modified"}


@pytest.mark.parametrize("part", [0.0, 0.3, 0.6, 0.9])
def test_a_half_written_lock_file_is_read_again(project, monkeypatch, part):
    full, read_steps = LOCKFILE.read_text(), status._steps
    monkeypatch.setattr(status, "SECONDS_BETWEEN", 0)
    LOCKFILE.write_text(full[: int(part * len(full))])

    def steps_then_write():
        try:
            return read_steps()
        finally:
            if LOCKFILE.read_text() != full:
                LOCKFILE.write_text(full)

    monkeypatch.setattr(status, "_steps", steps_then_write)
    assert not any(step.is_due for step in steps())


def test_a_project_that_dvc_cannot_read_is_an_error(project):
    Path("dvc.yaml").write_text("stages: [")
    with pytest.raises(PlanError, match=r"DVC cannot read this project: .*dvc\.yaml"):
        steps()
    assert "run `git init`" in str(status.unreadable_error("/a is not a git repository"))
