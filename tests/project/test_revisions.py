"""Files of the working folder, of git's index and of commits."""

import subprocess
from pathlib import Path

import pytest

from tests.repository import commit, git, write
from wxb.core.errors import WxbError
from wxb.project import revisions


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A project in a folder of a repository: committed, staged and changed again."""
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    git("init", "-q")
    write("reports/a.json", "committed")
    write("reports/deep/ü.json", "committed")
    write("../outside.json", "no part of the project")
    first = commit()
    write("reports/a.json", "staged")
    write("reports/b.json", "staged")
    git("add", "--all")
    write("reports/a.json", "changed")
    write("reports/c.json", "new")
    return first


def test_each_tree_has_its_own_files(repository):
    contents = {
        tree.name: ([*map(str, tree.files("reports"))], tree.read("reports/a.json"))
        for tree in (revisions.WorkingTree(), revisions.index(), revisions.commit("HEAD"))
    }
    a, b, c = "reports/a.json", "reports/b.json", "reports/c.json"
    deep = "reports/deep/ü.json"
    assert contents == {
        "here": ([a, b, c, deep], b"changed"),
        "git's index": ([a, b, deep], b"staged"),
        f"HEAD ({repository[:7]})": ([a, deep], b"committed"),
    }


def test_absent_files_have_no_content(repository):
    for tree in (revisions.WorkingTree(), revisions.index(), revisions.commit("HEAD")):
        assert tree.read("reports/none.json") is tree.read("reports") is None
        assert tree.files("none") == []


def test_a_file_with_a_merge_conflict_is_an_error(repository):
    write("reports/a.json", '<<<<<<< HEAD\n{"f1": 0.5}\n')
    with pytest.raises(WxbError, match=r"reports/a\.json in here.*git checkout"):
        revisions.read_json(revisions.WorkingTree(), Path("reports/a.json"))


def test_an_unknown_revision_is_an_error(repository):
    for unknown in ("no-such-branch", "HEAD~7", "0000000", "HEAD:reports"):
        with pytest.raises(WxbError, match=rf"'{unknown}'.*git log"):
            revisions.commit(unknown)


def test_a_new_repository_needs_files_and_a_commit(cwd):
    git("init", "-q")
    with pytest.raises(WxbError, match=r"git commit` makes.*--unshallow"):  # `git log` fails, too
        revisions.commit("HEAD")
    with pytest.raises(WxbError, match=r"index is empty.*git add"):
        revisions.index()
    write("a.json", "staged")
    git("add", "--all")
    assert revisions.index().read("a.json") == b"staged"


def test_a_folder_without_repository_is_an_error(cwd, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(cwd.parent))
    for read in (revisions.index, lambda: revisions.commit("HEAD")):
        with pytest.raises(WxbError, match="repository"):
            read()


def test_missing_git_is_an_error(cwd, monkeypatch):

    def run(*_, **__):
        raise FileNotFoundError

    write(".git/HEAD", "")
    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(WxbError, match="install git"):
        revisions.index()
    assert revisions.WorkingTree().files("reports") == []
