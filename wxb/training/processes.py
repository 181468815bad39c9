"""Several processes on one machine that train one model; the stage is the first of them.

They find each other by RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in the
environment, as with torchrun and `accelerate launch` (docs.pytorch.org, "Environment variable
initialization"). A process that has these starts no others. This module does not import torch.
"""

import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wxb.core import files
from wxb.core.errors import WxbError
from wxb.core.progress import Progress


def rank() -> int:
    """The rank of this process; 0 is the first."""
    return int(os.environ.get("RANK", "0"))


def count() -> int:
    """The number of processes."""
    return int(os.environ.get("WORLD_SIZE", "1"))


@contextmanager
def launch(processes: int) -> Iterator[None]:
    """Start the command of this process again, so that `processes` of them train together.

    At the end, this process waits for the others, or kills them after an error. If another fails,
    this one prints a message, kills all and exits with 1, without cleanup. Starts none if
    WORLD_SIZE is set. Raises WxbError if it differs from `processes`.
    """
    if "WORLD_SIZE" in os.environ and count() != processes:
        raise WxbError(
            f"found {count()} processes (WORLD_SIZE); expected {processes}"
            " (`training.processes`), so that each update reads the same records"
        )
    if "WORLD_SIZE" in os.environ or processes == 1:
        yield
        return
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        address, port = listener.getsockname()
    shared = {"WORLD_SIZE": str(processes), "MASTER_ADDR": address, "MASTER_PORT": str(port)}
    ranks = [{**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(processes)]
    command = [sys.executable, *sys.orig_argv[1:]]
    others = [subprocess.Popen(command, env={**os.environ, **own}) for own in ranks[1:]]

    has_ended = threading.Event()

    def kill() -> None:
        has_ended.set()
        for process in others:
            process.kill()
            process.wait()

    def watch(rank: int) -> None:
        code = others[rank - 1].wait()
        if code and not has_ended.is_set():  # negative: the number of a signal
            message = f"process {rank} of {processes} failed (exit code {code}); see the log"
            print(message, file=Progress.console, flush=True)
            kill()
            os._exit(1)  # this process may be waiting for it in code that ignores signals

    for rank in range(1, processes):
        threading.Thread(target=watch, args=(rank,), daemon=True).start()
    os.environ.update(ranks[0])
    try:
        yield
        for process in others:
            process.wait()
    finally:
        kill()
        for name in ranks[0]:
            del os.environ[name]


@contextmanager
def publish(*targets: Path) -> Iterator[tuple[Path, ...]]:
    """Publish the files of the first process, see `files.publish`; discard those of the others."""
    if rank() == 0:
        with files.publish(*targets) as drafts:
            yield drafts
    else:
        with tempfile.TemporaryDirectory() as folder:
            yield tuple(Path(folder, str(index)) for index, _ in enumerate(targets))
