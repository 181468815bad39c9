"""The command `dvc` with atomic writes: `python -m wxb.project.integrity.dvc repro`.

DVC rewrites its rwlock and dvc.lock in place, so a signal or a full disk at that moment damages
them. Both are written through `open` of one class, which DVC has no setting for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from wxb.core.files import publish
from wxb.project.dag import LOCKFILE
from wxb.runtime.engine import RWLOCK

NAMES = {LOCKFILE.name, RWLOCK.name}


def write_atomically() -> None:
    """Make DVC write its rwlock and dvc.lock atomically in this process."""
    from dvc_objects.fs.local import FsspecLocalFileSystem

    if FsspecLocalFileSystem.open.__module__ != __name__:
        setattr(FsspecLocalFileSystem, "open", _opener(FsspecLocalFileSystem.open))  # noqa: B010


def _opener(open_: Callable[..., Any]) -> Callable[..., Any]:
    def open_atomically(fs: Any, path: Any, mode: str = "r", **kwargs: Any) -> Any:
        if "w" in mode and Path(path).name in NAMES:
            return _draft(Path(path))
        return open_(fs, path, mode=mode, **kwargs)

    return open_atomically


@contextmanager
def _draft(path: Path) -> Iterator[TextIO]:
    """A new text file, which replaces `path` at the end; an exception leaves `path` as it was."""
    with publish(path) as (draft,), draft.open("w", encoding="utf-8") as file:
        yield file


if __name__ == "__main__":
    from dvc.cli import main

    write_atomically()
    sys.argv[0] = "dvc"  # the name in DVC's rwlock
    sys.exit(main())
