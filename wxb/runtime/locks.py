"""A lock per stage: if an engine is killed, its stage may still run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil  # type: ignore[import-untyped]
from filelock import FileLock, Timeout

LOCKS = Path(".wxb/locks")  # one file for each running stage, with the PID of its process


@contextmanager
def hold(stage: str) -> Iterator[None]:
    """Wait until no other process runs the stage, and hold its lock file.

    The system releases the lock when the process ends, even if it is killed. Child processes do not
    inherit it. Ctrl-C while waiting exits with 130.
    """
    path = LOCKS / f"{stage}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path, fallback_to_soft=False)  # a soft lock would outlive a killed holder
    try:
        acquired = lock.acquire(blocking=False)
    except Timeout:
        try:
            print(
                f"{stage}: waiting for process {path.read_text(encoding='utf-8')}, "
                "which runs the same stage (was its engine stopped?)",
                file=sys.stderr,
                flush=True,
            )
            acquired = lock.acquire(poll_interval=0.5)
        except KeyboardInterrupt:
            sys.exit(130)
    with acquired:
        path.write_text(str(os.getpid()), encoding="utf-8")
        yield


def holders() -> dict[str, psutil.Process]:
    """The processes that run stages of this project now, by stage.

    The locks themselves are not acquired: a stage that starts meanwhile would fail.
    """
    found = {path.stem: _holder(path) for path in sorted(LOCKS.glob("*.lock"))}
    return {stage: process for stage, process in found.items() if process}


def _holder(lock: Path) -> psutil.Process | None:
    """The process that a lock file names, if it still runs that stage."""
    verb, _, name = lock.stem.partition("@")
    try:
        process = psutil.Process(int(lock.read_text(encoding="utf-8")))
        command = process.cmdline()
    except (ValueError, OSError, psutil.Error):
        return None
    return process if f"stages.{verb}" in command and name in command else None
