"""Several processes that train one model: the first is the stage, and starts the others.

They find each other as torchrun's and `accelerate launch`'s do, by RANK, LOCAL_RANK, WORLD_SIZE,
MASTER_ADDR and MASTER_PORT in the environment (docs.pytorch.org, "Environment variable
initialization"); one that was started with these starts none. Those of other nodes are started by
Slurm's srun, in the job that the stage is. Nothing here imports torch.
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

from wxb.core.errors import WxbError
from wxb.core.files import publish
from wxb.core.progress import Progress

LOCAL = "127.0.0.1"
# A task of srun becomes a process like those of the first node: $0 is how many that has.
TASK = 'RANK=$((SLURM_PROCID + $0)) LOCAL_RANK=$SLURM_LOCALID exec "$@"'


def rank() -> int:
    """The number of this process; 0 is the first, or one alone."""
    return int(os.environ.get("RANK", "0"))


def count() -> int:
    """How many there are."""
    return int(os.environ.get("WORLD_SIZE", "1"))


@contextmanager
def together(processes: int, nodes: int = 1) -> Iterator[None]:
    """Run the command of this process in others too, until so many train together.

    In a job of Slurm they are on so many `nodes`, as many on each; else all are here. They end with
    it, and it ends where one of them fails. Raises WxbError where something else has started
    another number of them.
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
    if "SLURM_JOB_ID" not in os.environ:
        nodes = 1
    here = processes // nodes
    address = LOCAL if nodes == 1 else socket.gethostname()
    shared = {"WORLD_SIZE": str(processes), "MASTER_ADDR": address}
    with _environment({**shared, "MASTER_PORT": _free_port(), "RANK": "0", "LOCAL_RANK": "0"}):
        command = [sys.executable, *sys.orig_argv[1:]]
        others = {
            f"process {number} of {processes}": subprocess.Popen(
                command, env={**os.environ, "RANK": str(number), "LOCAL_RANK": str(number)}
            )
            for number in range(1, here)
        }
        if nodes > 1:
            srun = [*_srun(nodes - 1, here), "sh", "-c", TASK, str(here), *command]
            others["a process of another node"] = subprocess.Popen(srun)
        for name in others:
            threading.Thread(target=_watch, args=(name, others), daemon=True).start()
        try:
            yield
            for process in others.values():
                process.wait()
        finally:
            _end(others.values())


@contextmanager
def published(*targets: Path) -> Iterator[tuple[Path, ...]]:
    """As `wxb.core.files.publish` of the first process; what the others write is thrown away."""
    if rank() == 0:
        with publish(*targets) as drafts:
            yield drafts
    else:
        with tempfile.TemporaryDirectory() as folder:
            yield tuple(Path(folder, str(place)) for place, _ in enumerate(targets))


def _srun(nodes: int, tasks: int) -> list[str]:
    """Tasks on each of so many nodes of this job, all but the first."""
    return [
        *("srun", "--relative=1", f"--nodes={nodes}", f"--ntasks={nodes * tasks}"),
        *(f"--ntasks-per-node={tasks}", f"--cpus-per-task={os.environ.get('OMP_NUM_THREADS', 1)}"),
        *("--overlap", "--kill-on-bad-exit=1", "--input=none", "--mpi=none"),
    ]


def _watch(name: str, others: Mapping[str, subprocess.Popen[bytes]]) -> None:
    """End all if one fails: the first would wait for it, in code that heeds no signal."""
    code = others[name].wait()
    if code > 0:
        told = f"{name} failed (exit code {code})"
        print(f"{told}; the end of the stage's log in logs/ says why", file=Progress.console)
        Progress.console.flush()
        _end(others.values())
        os._exit(1)


def _end(others: Iterable[subprocess.Popen[bytes]]) -> None:
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


def _free_port() -> str:
    with socket.socket() as found:
        found.bind(("", 0))
        return str(found.getsockname()[1])
