"""What a killed run leaves in DVC's records is repaired before the next run."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from dvc.lock import make_lock
from dvc.repo import Repo
from ruamel.yaml import YAML

from tests.commands import sleeping_process
from tests.project.toy import flip, stages_run
from tests.repository import git, write
from wxb.project import repair, status
from wxb.project.engines import PlanError, repair_and_run_check
from wxb.runtime.engine import LOCKFILE, RWLOCK

DAMAGED = ["", '{"write": {"/a": {"pi', '{"write": []}', "\0\0\0"]
DAMAGED += [pytest.param(text, marks=pytest.mark.slow) for text in ("{", "[]")]


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_rwlock_is_removed(toy_project, capsys, content):
    RWLOCK.write_text(content)
    status.steps()  # reads only
    repair_and_run_check()
    assert capsys.readouterr().err == f"{RWLOCK} was damaged by a killed run; it was removed\n"
    assert stages_run() == []
    repair_and_run_check()
    assert capsys.readouterr().err == ""


def test_an_rwlock_that_dvc_is_writing_is_left_alone(toy_project):
    RWLOCK.write_text("{")
    with make_lock(f"{RWLOCK}.lock"):
        assert list(repair.release_rwlock()) == []
    assert RWLOCK.read_text() == "{"


def test_locks_of_dead_processes_and_reused_pids_are_removed(toy_project, capsys):
    with sleeping_process() as pid:
        owner = {"pid": pid, "cmd": "dvc repro"}
        content = json.dumps({"write": {"/a": owner}, "read": {"/b": [owner]}})
        RWLOCK.write_text(content)
        with pytest.raises(PlanError, match=rf"active in this project \(PID {pid}: .*time\.sleep"):
            repair_and_run_check()
        assert RWLOCK.read_text() == content
        os.utime(RWLOCK, (1, 1))
        repair_and_run_check()
        assert "had locks of a killed run" in capsys.readouterr().err
    RWLOCK.write_text(content)
    repair_and_run_check()
    assert "had locks of a killed run" in capsys.readouterr().err


def test_no_run_starts_while_a_stage_runs(toy_project):
    with sleeping_process("stages.train", "x") as pid:
        write(".wxb/locks/train@x.lock", str(pid))
        with pytest.raises(PlanError, match=rf"active in this project \(PID {pid}: .*train x"):
            repair_and_run_check()
    repair_and_run_check()


@pytest.mark.slow
@pytest.mark.parametrize("is_committed", [True, False])
def test_any_cut_of_the_lock_file_is_repaired(toy_project, is_committed):
    """Also within a line, and at the end of a record; other records are in DVC's run cache."""
    if not is_committed:
        git("rm", "-q", "--cached", "dvc.lock")
        git("commit", "-qm", "without")
    text = LOCKFILE.read_text()
    ends = [match.end() for match in re.finditer("\n", text[:-1])]
    for size in {0, *ends[::8], text.index("\n  score:") + 1, *range(10, len(text), 300)}:
        LOCKFILE.write_text(text[:size])
        repair_and_run_check()
        assert stages_run() == [], size
        assert hashes(LOCKFILE.read_text()) == hashes(text), size


@pytest.mark.parametrize(
    "damage", [("hash: md5", "hash: ld5"), ("md5: ", "md6: "), ("cmd: ", "dmc: ")]
)
def test_a_lock_file_with_a_bad_record_is_replaced(toy_project, damage):
    text = LOCKFILE.read_text()
    git("rm", "-q", "--cached", "dvc.lock")
    git("commit", "-qm", "without")
    start = text.index("  score:")
    LOCKFILE.write_text(text[:start] + text[start:].replace(*damage, 1))
    repair_and_run_check()
    assert not LOCKFILE.exists()
    assert stages_run() == []
    assert hashes(LOCKFILE.read_text()) == hashes(text)


def hashes(text):
    """The hashes in a text of dvc.lock by stage, without sizes."""
    stages = YAML(typ="safe").load(text)["stages"]
    entries = {n: [*record.get("deps", ()), *record["outs"]] for n, record in stages.items()}
    return {n: [(entry["path"], entry["md5"]) for entry in e] for n, e in entries.items()}


def test_a_removed_lock_file_is_left_to_the_user(toy_project, capsys):
    LOCKFILE.unlink()
    repair_and_run_check()
    assert not LOCKFILE.exists()
    assert capsys.readouterr().err == ""
    assert stages_run() == []  # from the run cache


def test_a_lost_cache_is_filled_from_the_workspace(toy_project, capsys):
    shutil.rmtree(".dvc/cache")
    assert {how for step in status.steps() for how in step.changes.values()} == {"not in cache"}
    assert not any(step.is_due for step in status.steps())
    repair_and_run_check()
    assert "restored from the workspace" in capsys.readouterr().err
    assert stages_run() == []
    shutil.rmtree("made")
    with Repo() as repo:
        repo.checkout()
    assert Path("made/other").read_text() == "1\n"


def test_any_lost_object_reruns_no_stage(toy_project):
    for path in [path for path in Path(".dvc/cache/files").rglob("*") if path.is_file()]:
        path.unlink()
        repair_and_run_check()
        assert stages_run() == [], path


def test_an_empty_folder_in_the_run_cache_is_removed(toy_project, capsys):
    """DVC fails at each run that looks into it."""
    runs = Path(".dvc/cache/runs")
    before, empty = {*runs.rglob("*")}, runs / "aa/aa1"
    empty.mkdir(parents=True)
    repair_and_run_check()
    assert str(empty) in capsys.readouterr().err
    assert not empty.exists()
    assert before <= {*runs.rglob("*")}


def test_bytes_that_differ_are_not_put_into_the_cache(toy_project):
    """DVC trusts the time of a file; here it is known and unchanged."""
    shutil.rmtree(".dvc/cache")
    flip(Path("made/other"))
    repair_and_run_check()
    assert stages_run() == ["make"]
    assert Path("made/other").read_text() == "1\n"
