"""Secret files of `wxb mask` stay out of git."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.masking.running import MASK, wxb
from wxb.core.errors import WxbError
from wxb.masking import git


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with the configuration of no user."""
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, os.devnull)
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    return tmp_path


def added(repository):
    """The files that git has after `git add --all`."""
    subprocess.run(["git", "add", "--all"], cwd=repository, check=True)
    command = ["git", "ls-files", "-z"]
    listed = subprocess.run(command, cwd=repository, check=True, capture_output=True, text=True)
    return sorted(filter(None, listed.stdout.split("\0")))


def test_git_adds_neither_mapping_nor_key_nor_lock(repository):
    options = ["--mapping", "secret.json", "--key-file", "new/key"]
    environment = {name: os.environ[name] for name in ("PATH", "GIT_CONFIG_GLOBAL")}
    result = wxb(repository, *MASK, *options, given=b"Ann 5", **environment)
    assert (result.returncode, result.stdout) == (0, b"<NAME_1> <AGE_1>")
    assert b"git ignores" in result.stderr
    assert (repository / "secret.json").exists()
    assert added(repository) == []
    result = wxb(repository, *MASK, *options, given=b"Ann 5", **environment)
    assert (result.returncode, result.stderr) == (0, b"")


@pytest.mark.parametrize("name", ["a b.json", "[x]*?.json", "!m", "#m", "ä\\.json", " m "])
def test_any_name_is_excluded_once(repository, name):
    folder = repository / "inner"
    folder.mkdir()
    for _ in range(2):
        git.exclude(folder / name)
    (folder / name).touch()
    (folder / "other").touch()
    for suffix in ("partial", "partial.lock"):  # of a killed command
        (folder / f".{name}.{suffix}").touch()
    assert added(repository) == ["inner/other"]
    lines = (repository / ".git/info/exclude").read_text(encoding="utf-8").splitlines()
    assert len([line for line in lines if line.startswith("/inner/")]) == 2


def test_a_tracked_file_is_refused(repository):
    (repository / "m.json").touch()
    assert added(repository) == ["m.json"]
    with pytest.raises(WxbError, match="git tracks this file"):
        git.exclude(repository / "m.json")


def test_a_name_that_git_cannot_ignore_is_refused(repository):
    with pytest.raises(WxbError, match="outside of the repository"):
        git.exclude(repository / "a\nb")


def test_outside_of_a_repository_nothing_happens(tmp_path, capfd):
    git.exclude(tmp_path / "m.json")
    assert capfd.readouterr() == ("", "")
    assert not [*Path(tmp_path).iterdir()]
