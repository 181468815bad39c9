import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.project_copy import ROOT
from wxb.core.files import publish, read_json, read_jsonl, write_json, write_jsonl


def names(folder):
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*"))


def test_a_file_and_a_folder_appear_together_at_the_end(tmp_path):
    file, folder = tmp_path / "deep/a.txt", tmp_path / "b"
    with publish(file, folder) as (draft, drafts):
        draft.write_text("a")
        (drafts / "sub").mkdir(parents=True)
        (drafts / "sub/c.txt").write_text("c")
        assert not file.exists()
        assert not folder.exists()
        assert draft.parent == file.parent  # on the same disk, so that renames are atomic
    assert names(tmp_path) == ["b", "b/sub", "b/sub/c.txt", "deep", "deep/a.txt"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_exception_leaves_everything_as_it_was(tmp_path, error):
    old = tmp_path / "old"
    old.mkdir()
    (old / "a.txt").write_text("old")

    def fail():
        with publish(old, tmp_path / "new.txt") as (folder, file):
            folder.mkdir()
            (folder / "a.txt").write_text("new")
            file.write_text("half")
            raise error

    with pytest.raises(error):
        fail()
    assert names(tmp_path) == ["old", "old/a.txt"]
    assert (old / "a.txt").read_text() == "old"


def test_nothing_appears_when_one_target_was_forgotten(tmp_path):
    with (
        pytest.raises(FileNotFoundError, match=r"\.b\.partial"),
        publish(tmp_path / "a", tmp_path / "b") as (a, _),
    ):
        a.write_text("a")
    assert names(tmp_path) == []


def make(path, kind):
    """A file, a folder with a file, or a link to a folder."""
    if kind == "file":
        path.write_text(kind)
    elif kind == "link":
        path.symlink_to(path.parent / "elsewhere")
    else:
        path.mkdir()
        (path / f"{kind}.txt").touch()


@pytest.mark.parametrize("old", ["file", "folder", "link"])
@pytest.mark.parametrize("new", ["file", "new folder"])
def test_an_existing_target_is_replaced(tmp_path, old, new):
    make(tmp_path / "elsewhere", "kept")
    make(tmp_path / "target", old)
    with publish(tmp_path / "target") as (draft,):
        make(draft, new)
    inside = [] if new == "file" else ["target/new folder.txt"]
    assert names(tmp_path) == ["elsewhere", "elsewhere/kept.txt", "target", *inside]
    assert not (tmp_path / "target").is_symlink()


def test_a_killed_run_leaves_no_target_and_the_next_removes_its_drafts(tmp_path):
    code = """
import os, signal
from wxb.core.files import publish
with publish("folder", "file.txt") as (folder, file):
    folder.mkdir()
    (folder / "half.txt").write_text("half")
    file.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    command, environment = [sys.executable, "-c", code], {"PYTHONPATH": str(ROOT)}
    killed = subprocess.run(command, cwd=tmp_path, env=environment)
    assert killed.returncode == -signal.SIGKILL
    assert not (tmp_path / "folder").exists()
    assert not (tmp_path / "file.txt").exists()
    assert any(tmp_path.iterdir())
    with publish(tmp_path / "folder", tmp_path / "file.txt") as (folder, file):
        folder.mkdir()
        file.write_text("whole")
    assert names(tmp_path) == ["file.txt", "folder"]


def test_targets_are_renamed_in_order(tmp_path, monkeypatch):
    for name in ("a", "b"):
        (tmp_path / name).write_text("old")
    replace = Path.replace

    def fail_at_b(draft, final):
        if final.name == "b":
            raise OSError("killed")
        return replace(draft, final)

    monkeypatch.setattr(Path, "replace", fail_at_b)
    with pytest.raises(OSError, match="killed"), publish(tmp_path / "a", tmp_path / "b") as drafts:
        _ = [draft.write_text("new") for draft in drafts]
    assert [(tmp_path / name).read_text() for name in names(tmp_path)] == ["new", "old"]


def test_a_second_writer_is_an_error_and_changes_nothing(tmp_path):
    code = (
        "from wxb.core.files import publish\n"
        "with publish('other', 'file.txt') as drafts:\n"
        "    raise AssertionError"
    )

    def second_writer():
        return subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env={"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
        ).stderr

    with publish(tmp_path / "file.txt") as (draft,):
        draft.write_text("whole")
        assert "file.txt: another process is writing it; wait" in second_writer()
        assert draft.read_text() == "whole"
    assert (tmp_path / "file.txt").read_text() == "whole"
    assert names(tmp_path) == ["file.txt"]
    assert "AssertionError" in second_writer()  # the lock is gone


def test_json_lines_keep_line_separators_and_lone_surrogates(tmp_path):
    content = ["a\u2028b\rc\nd", "lone \ud83d", "é"]
    write_jsonl(tmp_path / "a.jsonl", content)
    assert list(read_jsonl(tmp_path / "a.jsonl")) == content
    assert (tmp_path / "a.jsonl").read_bytes().count(b"\n") == 3
    assert "é" in (tmp_path / "a.jsonl").read_text(encoding="utf-8")


def test_nan_is_an_error_and_leaves_the_file_unchanged(tmp_path):
    write_json(tmp_path / "a.json", 1)
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "a.json", float("nan"))
    assert read_json(tmp_path / "a.json") == 1


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o007, 0o660), (0o077, 0o600)])
def test_files_of_a_published_folder_have_the_mode_of_the_umask(tmp_path, umask, mode):
    before = os.umask(umask)
    try:
        with publish(tmp_path / "model") as (draft,):
            draft.mkdir()
            (draft / "weights").touch(mode=0o600)
        with publish(tmp_path / "key") as (draft,):
            draft.touch(mode=0o600)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "model/weights").stat().st_mode) == mode
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
