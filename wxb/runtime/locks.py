"""One process at a time runs a stage: an engine that is killed may leave its stage running."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

LOCKS = Path(".wxb/locks")


@contextmanager
def exclusive(stage: str) -> Iterator[None]:
    """Wait until no other process runs the stage, and keep others waiting meanwhile.

    The system releases the lock when its holder ends, however it ends; children don't inherit it.
    """
    path = LOCKS / f"{stage}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path, fallback_to_soft=False)  # a soft lock would outlive a killed holder
    try:
        held = lock.acquire(blocking=False)
    except Timeout:
        try:
            print(
                f"{stage}: waiting for process {path.read_text(encoding='utf-8')}, "
                "which runs the same stage (was its engine stopped?)",
                file=sys.stderr,
                flush=True,
            )
            held = lock.acquire(poll_interval=0.5)
        except KeyboardInterrupt:
            sys.exit(130)
    with held:
        path.write_text(str(os.getpid()), encoding="utf-8")
        yield
