"""Divide the GPUs of this machine among the stages that run at the same time."""

import getpass
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from wxb.core.errors import WxbError


@contextmanager
def reserve(count: int) -> Iterator[None]:
    """Set CUDA_VISIBLE_DEVICES to `count` GPUs, if possible to those that no other stage uses.

    Holds a lock file per free GPU. If too few are free, stages share GPUs: the engine decides how
    many stages run at once. Runs nvidia-smi unless CUDA_VISIBLE_DEVICES is set. Raises WxbError if
    this machine has GPUs, but fewer than `count`; torchrun's `count` is of all machines.
    """
    with ExitStack() as locks:
        free: list[str] = []
        busy: list[str] = []
        for gpu in _visible():
            path = Path(tempfile.gettempdir(), f"wxb-{getpass.getuser()}", f"{gpu}.lock")
            path.parent.mkdir(exist_ok=True)
            lock = FileLock(path, fallback_to_soft=False)
            try:
                if len(free) < count:
                    locks.enter_context(lock.acquire(blocking=False))
                    free.append(gpu)
            except Timeout:
                busy.append(gpu)
        visible = len(free) + len(busy)
        if 0 < visible < count and "WORLD_SIZE" not in os.environ:
            raise WxbError(
                f"training.processes is {count}, but there are {visible} GPUs; lower it, or train"
                " on the CPU with `CUDA_VISIBLE_DEVICES=`"
            )
        if visible:
            os.environ["CUDA_VISIBLE_DEVICES"] = ",".join([*free, *busy][:count])
        yield


def _visible() -> list[str]:
    """CUDA's names of the GPUs that this process may use; runs nvidia-smi."""
    variable = os.environ.get("CUDA_VISIBLE_DEVICES")
    if variable is not None:
        return [gpu.strip() for gpu in variable.split(",") if gpu.strip() not in ("", "-1")]
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    query = [tool, "--query-gpu=uuid", "--format=csv,noheader"]
    return subprocess.run(query, capture_output=True, text=True, check=False).stdout.split()
