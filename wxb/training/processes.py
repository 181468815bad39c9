"""Several processes that train one model: the stage is the first, and starts the others.

They find each other by RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT in the
environment, as with torchrun and `accelerate launch` (docs.pytorch.org, "Environment variable
initialization"). A process that has these starts no others. Slurm's srun starts the processes of
other nodes, in the job of the stage. This module does not import torch.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from wxb.core import files
from wxb.core.errors import WxbError
from wxb.core.progress import Progress

LOCAL = "127.0.0.1"
# Command of a task of srun, to set the rank of its process; $0 is the number of tasks a node.
TASK = 'RANK=$((SLURM_PROCID + $0)) LOCAL_RANK=$SLURM_LOCALID exec "$@"'


def rank() -> int:
    """The rank of this process; 0 is the first."""
    return int(os.environ.get("RANK", "0"))


def count() -> int:
    """The number of processes."""
    return int(os.environ.get("WORLD_SIZE", "1"))


@contextmanager
def launch(processes: int, nodes: int = 1) -> Iterator[None]:
    """Start the command of this process again, so that `processes` of them train together.

    In a Slurm job they are distributed evenly over `nodes`; otherwise all run on this machine. At
    the end, this process waits for the others. If one fails, all are killed and this process exits
    with 1. Nothing is started if WORLD_SIZE is set; WxbError if it differs from `processes`.
    """
    if "WORLD_SIZE" in os.environ:
        if count() != processes:
            raise WxbError(
                f"found {count()} processes (WORLD_SIZE); expected {processes}"
                " (`training.processes`), so that each update reads the same records"
            )
        yield
        return
    if processes == 1:
        yield
        return
    if "SLURM_JOB_ID" not in os.environ:
        nodes = 1
    per_node = processes // nodes
    address = LOCAL if nodes == 1 else socket.gethostname()
    shared = {"WORLD_SIZE": str(processes), "MASTER_ADDR": address}
    with _environment({**shared, "MASTER_PORT": _free_port(), "RANK": "0", "LOCAL_RANK": "0"}):
        command = [sys.executable, *sys.orig_argv[1:]]
        others = {
            f"process {rank} of {processes}": subprocess.Popen(
                command, env={**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank)}
            )
            for rank in range(1, per_node)
        }
        if nodes > 1:
            srun = [*_srun(nodes - 1, per_node), "sh", "-c", TASK, str(per_node), *command]
            others["a process of another node"] = subprocess.Popen(srun)
        for name in others:
            threading.Thread(target=_watch, args=(name, others), daemon=True).start()
        try:
            yield
            for process in others.values():
                process.wait()
        finally:
            _kill(others.values())


@contextmanager
def publish(*targets: Path) -> Iterator[tuple[Path, ...]]:
    """Publish the files of the first process, see `files.publish`; discard those of the others."""
    if rank() == 0:
        with files.publish(*targets) as drafts:
            yield drafts
    else:
        with tempfile.TemporaryDirectory() as folder:
            yield tuple(Path(folder, str(index)) for index, _ in enumerate(targets))


def _srun(nodes: int, tasks: int) -> list[str]:
    """The srun command for `tasks` tasks on each of `nodes` nodes of this job, after the first."""
    return [
        *("srun", "--relative=1", f"--nodes={nodes}", f"--ntasks={nodes * tasks}"),
        *(f"--ntasks-per-node={tasks}", f"--cpus-per-task={os.environ.get('OMP_NUM_THREADS', 1)}"),
        *("--overlap", "--kill-on-bad-exit=1", "--input=none", "--mpi=none"),
    ]


def _watch(name: str, others: Mapping[str, subprocess.Popen[bytes]]) -> None:
    """Wait for a process; if it fails, kill all others and exit.

    The first process may be waiting for it in code that ignores signals.
    """
    code = others[name].wait()
    if code > 0:
        message = f"{name} failed (exit code {code}); see the end of the stage's log in logs/"
        print(message, file=Progress.console, flush=True)
        _kill(others.values())
        os._exit(1)


def _kill(others: Iterable[subprocess.Popen[bytes]]) -> None:
    for process in others:
        process.kill()
        process.wait()


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Set environment variables in this context, and delete them afterwards."""
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            del os.environ[name]


def _free_port() -> str:
    with socket.socket() as listener:
        listener.bind(("", 0))
        return str(listener.getsockname()[1])
