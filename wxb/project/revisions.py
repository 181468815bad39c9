"""The project's files in the working folder, in git's index, or in a commit."""

import json
import subprocess
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from wxb.core.errors import WxbError


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
        if path not in self.files(path):
            return None
        return _git_output("cat-file", "blob", f"{self.sha}:./{path}")

    def files(self, folder: str) -> list[str]:
        """As in WorkingTree; for the path of a file, this path."""
        command = ("ls-tree", "-r", "--name-only", self.sha) if self.sha else ("ls-files",)
        return _names(_git_output(*command, "-z", "--", folder))


Tree = WorkingTree | GitTree


def read_json(tree: Tree, path: PurePath) -> dict[str, Any]:
    """The content of a JSON file of a tree; {} if the file does not exist or is empty.

    Raises WxbError for a file that is not JSON, such as one with the marks of a merge conflict.
    """
    try:
        return json.loads(tree.read(path.as_posix()) or b"{}")
    except ValueError as error:
        raise WxbError(
            f"{path} in {tree.name} is not JSON ({error}); expected a file of this project."
            f" `git checkout HEAD -- {path}` restores the committed one"
        ) from None


def index() -> GitTree:
    """Git's index. Raises WxbError if there is no repository, or if the index is empty."""
    tree = GitTree("git's index", "")
    if not tree.files("."):
        raise WxbError(f"{Path.cwd()}: git's index is empty; run `git add .` in the project first")
    return tree


def tracked(*folders: str) -> list[str]:
    """The files in git's index under folders; empty if the project is in no repository."""
    return _names(_git_output("ls-files", "-z", "--", *folders)) if is_repository() else []


def commit(revision: str) -> GitTree:
    """The commit of a revision, such as HEAD~1, a branch or a hash. Raises WxbError if unknown."""
    name = f"{revision}^{{commit}}"
    if not is_repository() or _git("rev-parse", "--verify", "--quiet", name).returncode == 1:
        raise WxbError(
            f"no commit {revision!r} in a repository of {Path.cwd()}; `git log` lists commits, `git"
            " commit` makes the first, `git fetch --unshallow` completes a shallow clone"
        )
    sha = _git_output("rev-parse", "--verify", name).decode().strip()
    short = _git_output("rev-parse", "--short", sha).decode().strip()
    return GitTree(short if sha.startswith(revision) else f"{revision} ({short})", sha)


def is_repository() -> bool:
    """Whether the project is in a git repository.

    Raises WxbError, as all functions here do, if that is unknown: git is missing, or refuses to
    read the repository, such as that of another user.
    """
    cwd = Path.cwd()
    if not any((folder / ".git").exists() for folder in (cwd, *cwd.parents)):
        return False
    return bool(_git_output("rev-parse", "--git-dir"))


def _names(output: bytes) -> list[str]:
    """The NUL-terminated names that a git command printed, sorted."""
    return sorted(filter(None, output.decode(errors="surrogateescape").split("\0")))


def _git_output(*arguments: str) -> bytes:
    """What a git command prints. Raises WxbError if it fails."""
    process = _git(*arguments)
    if process.returncode:
        fault = " ".join(process.stderr.decode(errors="replace").split())
        raise WxbError(f"{Path.cwd()}: git {arguments[0]} failed: {fault}")
    return process.stdout


def _git(*arguments: str) -> subprocess.CompletedProcess[bytes]:  # with any exit code
    try:
        return subprocess.run(["git", *arguments], capture_output=True, check=False)
    except FileNotFoundError:
        raise WxbError("no program `git` on the PATH; install git") from None
