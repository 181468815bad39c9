"""What DVC sees of a small project, with a run of DVC beside it and without."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from dvc.output import Output
from dvc.repo import Repo
from dvc.utils.serialize import LOADERS, load_yaml

from wxb.project import dag
from wxb.project.dag import LOCKFILE, RWLOCK, UnreadableError, steps, written

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
def project(tmp_path, monkeypatch):
    """The working folder: a project whose two stages DVC takes for run."""
    monkeypatch.chdir(tmp_path)
    Repo.init(no_scm=True).close()
    Path("dvc.yaml").write_text(DVC_YAML)
    Path("params.yaml").write_text("block: {key: 1}\nother: a")
    Path("made").mkdir()
    for name in ("source", "made/file", "used"):
        Path(name).write_text(name)
    with Repo() as repo:
        repo.commit(force=True)
    return tmp_path


def writes(*paths, pid):
    """Have DVC believe that a process writes these paths."""
    held = {str(Path.cwd() / path): {"pid": pid, "cmd": "dvc repro"} for path in paths}
    RWLOCK.write_text(json.dumps({"write": held, "read": {}}))


def dead():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_nothing_is_due_where_nothing_changed(project):
    make, use = steps()
    assert (make.name, make.upstream) == ("make", ())
    assert (use.name, use.upstream) == ("use", ("make",))
    assert make.before == make.after == {"block": {"key": 1}, "other": "a"}
    assert not make.due
    assert not use.due


@pytest.mark.parametrize(
    ("path", "content", "made", "used"),
    [
        ("source", "edited", {"source": "modified"}, {}),
        ("made/file", "edited", {"made": "modified"}, {"made/file": "modified"}),
        ("used", None, {}, {"used": "deleted"}),
        ("dvc.yaml", DVC_YAML.replace('"true"', "echo", 1), {"dvc.yaml": "modified"}, {}),
    ],
)
def test_what_changed_is_told(project, path, content, made, used):
    Path(path).unlink()
    if content is not None:
        Path(path).write_text(content)
    make, use = steps()
    assert (make.changes, use.changes) == (made, used)
    assert (make.due, use.due) == (bool(made), bool(used))


def test_a_changed_parameter_is_told_with_its_block(project):
    Path("params.yaml").write_text("block: {key: 2}\nother: a")
    for step in steps():
        assert step.due
        assert step.changes == {}
        assert (step.before["block"], step.after["block"]) == ({"key": 1}, {"key": 2})


def test_params_are_parsed_once_for_all_stages(project, monkeypatch):
    parsed = []

    def load(path, fs):
        parsed.append(path)
        return load_yaml(path, fs)

    monkeypatch.setitem(LOADERS, ".yaml", load)
    steps()
    assert len(parsed) == 1
    assert LOADERS[".yaml"] is load


def test_no_lock_is_needed_and_none_is_held(project, monkeypatch):
    status = Output.status
    looked = []

    def while_looking(entry):
        with Repo() as other, other.lock:  # raises LockError if it cannot be had
            looked.append(entry)
        assert not RWLOCK.exists()
        return status(entry)

    RWLOCK.unlink()  # what the commit has left
    with Repo() as repo, repo.lock:
        assert not any(step.due for step in steps())
    monkeypatch.setattr(Output, "status", while_looking)
    assert not any(step.due for step in steps())
    assert looked


def test_what_a_run_writes_is_no_change_but_running(project):
    Path("source").write_text("edited")
    Path("made/file").write_text("half")
    writes("made", pid=os.getpid())
    make, use = steps()
    assert make.running
    assert make.changes == {"source": "modified"}
    assert not use.due
    writes("made", pid=dead())
    make, use = steps()
    assert not make.running
    assert make.changes == {"source": "modified", "made": "modified"}
    assert use.changes == {"made/file": "modified"}


def test_what_vanishes_while_it_is_read_is_deleted(project, monkeypatch):
    def vanished(entry):
        raise FileNotFoundError(entry.fs_path)

    monkeypatch.setattr(Output, "status", vanished)
    make, _ = steps()
    assert make.changes == {"source": "deleted", "made": "deleted"}


@pytest.mark.parametrize("part", [0.0, 0.3, 0.6, 0.9])
def test_a_half_written_lock_file_is_read_again(project, monkeypatch, part):
    whole, look = LOCKFILE.read_text(), dag._steps
    monkeypatch.setattr(dag, "SECONDS_BETWEEN", 0)
    LOCKFILE.write_text(whole[: int(part * len(whole))])

    def while_written():
        try:
            return look()
        finally:
            if LOCKFILE.read_text() != whole:
                LOCKFILE.write_text(whole)

    monkeypatch.setattr(dag, "_steps", while_written)
    assert not any(step.due for step in steps())


def test_a_lock_file_that_never_rests_is_told(project, monkeypatch):
    monkeypatch.setattr(dag, "SECONDS_BETWEEN", 0)
    monkeypatch.setattr(dag, "_steps", lambda: LOCKFILE.write_text(LOCKFILE.read_text() + " "))
    with pytest.raises(UnreadableError, match=r"dvc\.lock is being written"):
        steps()


def test_a_project_that_dvc_cannot_read_is_told(project):
    Path("dvc.yaml").write_text("stages: [")
    with pytest.raises(UnreadableError, match=r"DVC cannot read this project: .*dvc\.yaml"):
        steps()


def test_what_is_written_is_read_from_the_lock_of_dvc(project, monkeypatch):
    monkeypatch.setattr(dag, "SECONDS_BETWEEN", 0)
    assert written() == {}
    writes("made", pid=os.getpid())
    assert written() == {str(project / "made"): os.getpid()}
    RWLOCK.write_text('{"write": {')  # DVC writes it at this moment, or was killed then
    assert written() == {}
    RWLOCK.unlink()
    assert written() == {}
