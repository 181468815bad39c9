"""Files that appear whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def publish(*targets: str | Path) -> Iterator[tuple[Path, ...]]:
    """Yield a path beside each target to write a file or folder to; rename them all at the end.

    Nothing appears under a target's name before everything is on disk, and an exception leaves the
    targets as they were. What a killed run left behind is removed first.
    """
    finals = [Path(target) for target in targets]
    drafts = [final.with_name(f".{final.name}.partial") for final in finals]
    for draft in drafts:
        _remove(draft)
        draft.parent.mkdir(parents=True, exist_ok=True)
    try:
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
