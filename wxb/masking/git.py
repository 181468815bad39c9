"""Keep secret files out of git."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from wxb import WxbError


def exclude(path: Path) -> None:
    """Add a file, its draft and its lock to `.git/info/exclude`, unless git ignores them already.

    Prints what it added to standard error. Does nothing outside of a repository, and without git.
    Raises WxbError if git tracks the file, or does not ignore it afterwards.
    """
    target = path.resolve()
    folder = next(parent for parent in target.parents if parent.is_dir())
    top = _git(folder, "rev-parse", "--show-toplevel")
    if not top:
        return
    if _git(folder, "ls-files", "--", str(target)):
        raise WxbError(
            f"{path}: git tracks this file, which has to stay secret; choose another path, or run"
            f" `git rm --cached {path}`"
        )
    draft = target.with_name(f".{target.name}.partial")  # also the start of the lock's name
    patterns = [
        "/" + re.sub(r"([\\*?\[ ])", r"\\\1", file.relative_to(str(top)).as_posix()) + end
        for file, end in ((target, ""), (draft, "*"))
        if not _is_ignored(folder, file)
    ]
    if not patterns:
        return
    exclude_file = folder / str(_git(folder, "rev-parse", "--git-path", "info/exclude"))
    try:
        exclude_file.parent.mkdir(exist_ok=True)
        with exclude_file.open("a", encoding="utf-8") as file:
            file.writelines(f"{pattern}\n" for pattern in patterns)
    except OSError as error:
        raise WxbError(
            f"{path}: git would add this file, which has to stay secret, and {exclude_file} cannot"
            f" be written ({error.strerror}); choose a path outside of the repository"
        ) from None
    if not (_is_ignored(folder, target) and _is_ignored(folder, draft)):
        raise WxbError(
            f"{path}: git would add this file, which has to stay secret; choose a path outside of"
            " the repository"
        )
    print(f"wxb: git ignores {path} from now on ({exclude_file})", file=sys.stderr)


def _is_ignored(folder: Path, target: Path) -> bool:
    return bool(_git(folder, "check-ignore", "--", str(target)))


def _git(folder: Path, *arguments: str) -> str:
    """What a git command prints in a folder; empty if it fails, or there is no git."""
    try:
        process = subprocess.run(
            ["git", "-c", "core.quotePath=false", *arguments],
            cwd=folder,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            check=False,
        )
    except FileNotFoundError:
        return ""
    return process.stdout.removesuffix("\n") if process.returncode == 0 else ""
