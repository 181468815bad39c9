"""Files that appear whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from filelock import FileLock, Timeout

from wxb.core.errors import WxbError


@contextmanager
def publish(*targets: str | Path) -> Iterator[tuple[Path, ...]]:
    """Yield a path beside each target to write a file or folder to; rename them all at the end.

    Each target appears whole: nothing is renamed before all of them are on disk, and an exception
    until then leaves everything as it was. Renames happen one after the other, in the order given:
    a run that is killed between two leaves the first target new and the second old, and one that is
    killed where a folder is about to be replaced, which has to be removed first, leaves none there.
    What a killed run left behind is removed by the next.

    Raises WxbError where another process publishes one of the targets at this time, or where
    something else than a file or folder is there.
    """
    finals = [Path(target) for target in targets]
    drafts = [final.with_name(f".{final.name}.partial") for final in finals]
    with ExitStack() as held:
        for final in finals:
            if final.exists() and not (final.is_file() or final.is_dir()):
                raise WxbError(f"{final}: found a device or pipe; expected a file or folder")
            held.enter_context(alone(final))
        try:
            for draft in drafts:
                _remove(draft)
            yield tuple(drafts)
            for draft in drafts:
                _sync(draft)
            for draft, final in zip(drafts, finals, strict=True):
                if final.is_dir() or draft.is_dir():
                    _remove(final)
                draft.replace(final)
                _fsync(final.parent)
        finally:
            for draft in drafts:
                _remove(draft)


@contextmanager
def alone(target: Path) -> Iterator[None]:
    """Keep other processes from writing a file or folder meanwhile; makes the folders above it.

    Raises WxbError where another one does so.
    """
    path = target.with_name(f".{target.name}.partial.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path, fallback_to_soft=False)  # a soft lock would outlive a killed holder
    try:
        lock.acquire(timeout=0.5, poll_interval=0.05)
    except Timeout:
        raise WxbError(
            f"{target}: another process is writing there; wait until it is done, or choose another"
            " place"
        ) from None
    try:
        yield
    finally:
        path.unlink(missing_ok=True)  # while it is held; a lock that has no name any more is none
        lock.release()


def create_private(path: Path) -> BinaryIO:
    """Open a new file that its owner alone may read. Raises FileExistsError if there is one."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def write_json(path: Path, content: Any) -> None:
    """Write JSON for people and for diffs: indented, UTF-8, with a final newline."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    """The content of a UTF-8 JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


def write_jsonl(path: Path, records: Iterable[Any]) -> None:
    """Write one JSON value a line, in UTF-8; lone surrogates, which it lacks, as JSON escapes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as lines:
        for record in records:
            lines.write(json.dumps(record, ensure_ascii=False) + "\n")


def read_jsonl(path: Path) -> Iterator[Any]:
    """The values of a JSON Lines file, one at a time."""
    with path.open(encoding="utf-8", newline="\n") as lines:
        for line in lines:
            yield json.loads(line)


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    if path.is_dir():
        for child in path.iterdir():
            _sync(child)
    _fsync(path)


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
