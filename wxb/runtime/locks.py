"""A lock per stage: if an engine is killed, its stage may still run."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil  # type: ignore[import-untyped]
from filelock import FileLock, Timeout

LOCKS = Path(".wxb/locks")  # one file for each running stage, with the PID of its process


@contextmanager
def hold(stage: str) -> Iterator[None]:
    """Wait until no other process runs the stage, then hold its lock file and write the PID to it.

    The system releases the lock when the process ends, even if it is killed. Child processes do not
    inherit it. Prints a line if it has to wait.
    """
    path = LOCKS / f"{stage}.lock"
    lock = FileLock(path, fallback_to_soft=False)  # a soft lock would outlive a killed holder
    try:
        acquired = lock.acquire(blocking=False)
    except Timeout:
        holder = f"process {path.read_text(encoding='utf-8')}, which runs the same stage"
        print(f"{stage}: waiting for {holder} (was its engine stopped?)", file=sys.stderr)
        acquired = lock.acquire(poll_interval=0.5)
    with acquired:
        path.write_text(str(os.getpid()), encoding="utf-8")
        yield


def running_stages() -> dict[str, psutil.Process]:
    """The processes that run stages of this project now, by stage; acquires no locks."""
    running = {}
    for path in sorted(LOCKS.glob("*.lock")):
        verb, _, name = path.stem.partition("@")
        with suppress(ValueError, OSError, psutil.Error):  # the process has ended
            process = psutil.Process(int(path.read_text(encoding="utf-8")))
            command = process.cmdline()
            if f"stages.{verb}" in command and name in command:  # the PID is not another's
                running[path.stem] = process
    return running
