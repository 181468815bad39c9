"""The project's files in the working folder, in git's index, or in a commit."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

from wxb.core.errors import WxbError

Process = subprocess.CompletedProcess[bytes]


class WorkingTree(NamedTuple):
    """The files in the working folder; paths are relative to the project."""

    name: str = "here"

    def read(self, path: str) -> bytes | None:
        """The content of a file; None if it does not exist."""
        return Path(path).read_bytes() if Path(path).is_file() else None

    def files(self, folder: str) -> list[str]:
        """The paths of all files under a folder, sorted."""
        return sorted(str(path) for path in Path(folder).rglob("*") if path.is_file())


class GitTree(NamedTuple):
    """The files of a commit, or of git's index: those that git would commit.

    `name`: its name in a sentence, such as `HEAD (03ec366)`. `sha` is empty for the index.
    """

    name: str
    sha: str

    def read(self, path: str) -> bytes | None:
        """As in WorkingTree."""
        process = _git("cat-file", "blob", f"{self.sha}:./{path}")
        return None if process.returncode else process.stdout

    def files(self, folder: str) -> list[str]:
        """As in WorkingTree."""
        command = ("ls-tree", "-r", "--name-only", self.sha) if self.sha else ("ls-files",)
        return _names(_git(*command, "-z", "--", folder))


Tree = WorkingTree | GitTree


def index() -> GitTree:
    """Git's index. Raises WxbError if there is no repository, or if the index is empty."""
    _require_repository()
    tree = GitTree("git's index", "")
    if not tree.files("."):
        raise WxbError(f"{Path.cwd()}: git's index is empty; run `git add .` in the project first")
    return tree


def tracked(*folders: str) -> list[str]:
    """The files in git's index under folders; empty if the project is in no repository.

    Raises WxbError if git is missing or cannot read the repository, such as that of another user.
    """
    cwd = Path.cwd()
    process = _git("ls-files", "-z", "--", *folders)
    if process.returncode and any((folder / ".git").exists() for folder in (cwd, *cwd.parents)):
        fault = " ".join(process.stderr.decode(errors="replace").split())
        raise WxbError(f"{cwd}: git cannot list the files that it tracks: {fault}")
    return _names(process)


def commit(revision: str) -> GitTree:
    """The commit of a revision: HEAD, HEAD~1, a branch, a tag or a hash.

    Raises WxbError for an unknown revision, and if there is no repository.
    """
    _require_repository()
    process = _git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    if process.returncode == 0:
        sha = process.stdout.decode().strip()
        short = _git("rev-parse", "--short", sha).stdout.decode().strip()
        return GitTree(short if sha.startswith(revision) else f"{revision} ({short})", sha)
    raise WxbError(f"no commit {revision!r} in this repository; `git log --oneline` lists commits")


def _require_repository() -> None:
    process = _git("rev-parse", "--git-dir")
    if process.returncode:
        fault = process.stderr.decode(errors="replace").strip()
        raise WxbError(f"{Path.cwd()}: expected a clone of the project's git repository: {fault}")


def _names(process: Process) -> list[str]:
    """The NUL-terminated names that a git command printed, sorted."""
    return sorted(filter(None, process.stdout.decode(errors="surrogateescape").split("\0")))


def _git(*arguments: str) -> Process:
    try:
        return subprocess.run(["git", *arguments], capture_output=True, check=False)
    except FileNotFoundError:
        raise WxbError("no program `git` on the PATH; install git") from None
