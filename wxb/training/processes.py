"""Several processes that train one model: the first is the stage, and starts the others beside it.

They find each other as torchrun's and `accelerate launch`'s do, by RANK, LOCAL_RANK, WORLD_SIZE,
MASTER_ADDR and MASTER_PORT in the environment (docs.pytorch.org, "Environment variable
initialization"); one that was started with these starts none. Nothing here imports torch.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from wxb.errors import WxbError
from wxb.files import publish
from wxb.progress import Progress

LOCAL = "127.0.0.1"


def rank() -> int:
    """The number of this process; 0 is the first, or one alone."""
    return int(os.environ.get("RANK", "0"))


def count() -> int:
    """How many there are."""
    return int(os.environ.get("WORLD_SIZE", "1"))


@contextmanager
def together(processes: int) -> Iterator[None]:
    """Run the command of this process in others too, until so many train together.

    They end with it, and it ends where one of them fails. Raises WxbError where something else has
    started another number of them.
    """
    if "WORLD_SIZE" in os.environ:
        if count() != processes:
            raise WxbError(
                f"found {count()} processes (WORLD_SIZE); expected `training.processes`, which is"
                f" {processes}: what one update reads would be another number of records"
            )
        yield
        return
    if processes == 1:
        yield
        return
    shared = {"WORLD_SIZE": str(processes), "MASTER_ADDR": LOCAL, "MASTER_PORT": str(_free_port())}
    with _environment({**shared, "RANK": "0", "LOCAL_RANK": "0"}):
        others = [
            subprocess.Popen(
                [sys.executable, *sys.orig_argv[1:]],
                env={**os.environ, "RANK": str(number), "LOCAL_RANK": str(number)},
            )
            for number in range(1, processes)
        ]
        for process in others:
            threading.Thread(target=_watch, args=(process, others), daemon=True).start()
        try:
            yield
            for process in others:
                process.wait()
        finally:
            _end(others)


@contextmanager
def published(*targets: Path) -> Iterator[tuple[Path, ...]]:
    """As `wxb.files.publish` of the first process; what the others write is thrown away."""
    if rank() == 0:
        with publish(*targets) as drafts:
            yield drafts
    else:
        with tempfile.TemporaryDirectory() as folder:
            yield tuple(Path(folder, str(place)) for place, _ in enumerate(targets))


def _watch(process: subprocess.Popen[bytes], others: Sequence[subprocess.Popen[bytes]]) -> None:
    """End all if one fails: the first would wait for it, in code that heeds no signal."""
    code = process.wait()
    if code > 0:
        told = f"process {others.index(process) + 1} of {len(others) + 1} failed (exit code {code})"
        print(f"{told}; the end of the stage's log in logs/ says why", file=Progress.console)
        Progress.console.flush()
        _end(others)
        os._exit(1)


def _end(others: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in others:
        process.kill()
        process.wait()


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            del os.environ[name]


def _free_port() -> int:
    with socket.socket() as found:
        found.bind((LOCAL, 0))
        port: int = found.getsockname()[1]
        return port
