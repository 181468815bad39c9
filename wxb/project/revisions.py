"""The project's files as they lie in the working folder, in git's index, or in a commit."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple, Protocol

from wxb.core.errors import WxbError

EMPTY = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # git's tree without files


class Tree(Protocol):
    """Files by their path, relative to the project."""

    @property
    def name(self) -> str:
        """What it is called in a sentence, such as `HEAD (03ec366)`."""

    def read(self, path: str) -> bytes | None:
        """The content of a file; None where there is none."""

    def files(self, folder: str) -> list[str]:
        """The paths of all files under a folder, sorted."""


class WorkingTree(NamedTuple):
    """What lies in the working folder."""

    name: str = "here"

    def read(self, path: str) -> bytes | None:
        """See Tree."""
        return Path(path).read_bytes() if Path(path).is_file() else None

    def files(self, folder: str) -> list[str]:
        """See Tree."""
        return sorted(str(path) for path in Path(folder).rglob("*") if path.is_file())


class Index(NamedTuple):
    """What git would commit: files as they were committed, or staged since."""

    name: str = "git's index"

    def read(self, path: str) -> bytes | None:
        """See Tree."""
        return _content(f":./{path}")

    def files(self, folder: str) -> list[str]:
        """See Tree."""
        return _lines("ls-files", "-z", "--", folder)


class Commit(NamedTuple):
    """What a commit has."""

    name: str
    sha: str

    def read(self, path: str) -> bytes | None:
        """See Tree."""
        return _content(f"{self.sha}:./{path}")

    def files(self, folder: str) -> list[str]:
        """See Tree."""
        return _lines("ls-tree", "-r", "-z", "--name-only", self.sha, "--", folder)


def index() -> Index:
    """Git's index; WxbError where there is no repository, or nothing in it yet."""
    _demand_repository()
    if not _lines("ls-files", "-z"):
        raise WxbError(
            f"{Path.cwd()}: git's index is empty; expected the project in it: `git add .` first"
        )
    return Index()


def commit(revision: str) -> Commit:
    """The commit of a revision: HEAD, HEAD~1, a branch, a tag or a hash.

    HEAD of a repository without commits has no files. Raises WxbError for an unknown revision, and
    where there is no repository.
    """
    _demand_repository()
    found = _git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    if found.returncode == 0:
        sha = found.stdout.decode().strip()
        short = _git("rev-parse", "--short", sha).stdout.decode().strip()
        return Commit(short if sha.startswith(revision) else f"{revision} ({short})", sha)
    if revision == "HEAD" and _git("rev-list", "-n", "1", "--all").stdout == b"":
        return Commit("HEAD (no commits yet)", EMPTY)
    raise WxbError(
        f"found no commit {revision!r} in this repository; expected a branch, a tag, a hash or such"
        " as HEAD~1: `git log --oneline` lists commits, and `git fetch` brings those of others"
    )


def _demand_repository() -> None:
    found = _git("rev-parse", "--git-dir")
    if found.returncode:
        raise WxbError(
            f"{Path.cwd()}: expected a git repository, which holds the committed results; git says:"
            f" {found.stderr.decode(errors='replace').strip()}. Clone the project with git; a"
            " downloaded archive has no history"
        )


def _content(name: str) -> bytes | None:
    found = _git("cat-file", "blob", name)
    return None if found.returncode else found.stdout


def _lines(*arguments: str) -> list[str]:
    found = _git(*arguments)
    return sorted(filter(None, found.stdout.decode(errors="surrogateescape").split("\0")))


def _git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["git", *arguments], capture_output=True, check=False)
    except FileNotFoundError:
        raise WxbError("found no program `git` on the PATH; install git") from None
