"""Atomic file writes, write locks, JSON and JSON Lines files, links and hashes."""

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from wxb.core.errors import WxbError

# Called before drafts replace their targets. A stage adds checks that raise WxbError.
publish_checks: list[Callable[[], None]] = []


@contextmanager
def publish(*targets: str | Path) -> Iterator[tuple[Path, ...]]:
    """Write files or folders atomically: yield a draft path for each target, rename at the end.

    The caller creates the drafts, hidden paths in the same folder. They replace the targets in
    order, after all are synced to disk and files in folders have the folder's mode. An exception
    before that changes nothing. A process killed during the renames may leave some targets old, and
    a folder absent. The next call removes leftover drafts.

    Creates the parent folders and holds a write lock on each target. Raises WxbError if another
    process holds one, or if a target is a device or pipe, and what `publish_checks` raise.
    """
    finals = [Path(target) for target in targets]
    drafts = [final.with_name(f".{final.name}.partial") for final in finals]
    with ExitStack() as locks:
        for final in finals:
            if final.exists() and not (final.is_file() or final.is_dir()):
                cure = "expected a file or folder: choose another path"
                raise WxbError(f"{final} is a device or pipe; {cure}")
            locks.enter_context(write_lock(final))
        try:
            for draft in drafts:
                remove(draft)
            yield tuple(drafts)
            for draft in drafts:
                mode = draft.stat().st_mode & 0o666
                for path in (*draft.rglob("*"), draft):
                    if path != draft and path.is_file() and not path.is_symlink():
                        path.chmod(mode)  # safetensors makes its files private
                    _fsync(path)
            for check in publish_checks:
                check()
            for draft, final in zip(drafts, finals, strict=True):
                if final.is_dir() or draft.is_dir():
                    remove(final)
                draft.replace(final)
                _fsync(final.parent)
        finally:
            for draft in drafts:
                remove(draft)


@contextmanager
def write_lock(target: Path) -> Iterator[None]:
    """Hold a lock file beside a file or folder, so that no other process writes it.

    Creates parent folders. Raises WxbError if it stays held for 0.5 s, OSError without flock.
    """
    path = target.with_name(f".{target.name}.partial.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path, fallback_to_soft=False)  # a soft lock would outlive a killed holder
    try:
        lock.acquire(timeout=0.5, poll_interval=0.05)
    except Timeout:
        raise WxbError(
            f"{target}: another process is writing it; wait until it is done, or choose another"
            " path"
        ) from None
    try:
        yield
    finally:
        path.unlink(missing_ok=True)  # before the release, so that no other holder loses its file
        lock.release()


def write_json(path: Path, content: Any) -> None:
    """Write indented JSON; creates parent folders. Raises ValueError for NaN and infinities."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    """The content of a UTF-8 JSON file. Raises ValueError for NaN and infinities."""
    return json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"found {name}; expected a finite number")


def write_jsonl(path: Path, records: Iterable[Any]) -> None:
    """Write one JSON value per line, in UTF-8; creates the parent folders.

    Lone surrogates, which UTF-8 cannot encode, become JSON escapes. NaN and infinities are written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as lines:
        for record in records:
            lines.write(json.dumps(record, ensure_ascii=False) + "\n")


def read_jsonl(path: Path) -> Iterator[Any]:
    """Yield the values of a JSON Lines file that this project wrote."""
    with path.open(encoding="utf-8", newline="\n") as lines:
        for line in lines:
            yield json.loads(line)


def remove(path: Path) -> None:
    """Delete a file, a folder with its content, or a link but not its target, if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def require_valid_links(outputs: Iterable[Path]) -> None:
    """Raise WxbError for a linked folder above an output, and for a broken link at or in it."""
    for output in outputs:
        inner = output.rglob("*") if output.is_dir() else ()
        for path in filter(Path.is_symlink, [*output.parents, output, *inner]):
            if path in output.parents:
                raise WxbError(
                    f"{path} is a link to {path.readlink()}, but DVC saves only files inside the"
                    " project. Replace the link with a folder; to keep files on another disk, run"
                    " `dvc config --local cache.dir FOLDER` and `dvc config --local cache.type"
                    " symlink`"
                )
            if not path.exists():
                raise WxbError(
                    f"{path} is a link to {path.readlink()}, which does not exist. Mount its disk;"
                    " if the file is lost, `wxb verify --repair` removes the link"
                )


def sha256(path: Path) -> str:
    """The SHA-256 hash of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
