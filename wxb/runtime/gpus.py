"""Divide the GPUs of this machine among the stages that run at the same time."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib import metadata
from itertools import product
from pathlib import Path

from filelock import FileLock, Timeout

from wxb.core.errors import WxbError


@contextmanager
def reserve(count: int) -> Iterator[None]:
    """Set CUDA_VISIBLE_DEVICES to `count` GPUs, those that the fewest other stages use.

    The n-th stage on a GPU holds its n-th lock file: the engine decides how many run at once. Runs
    nvidia-smi unless the variable is set. Under torchrun, whose LOCAL_RANK chooses, and without
    GPUs, sets the variable to 0, 1, ..., `count` - 1 unless it is set. It is not reset at the end.
    Raises WxbError if this machine has GPUs, but fewer than `count`, or a torch without CUDA.
    """
    gpus, chosen = [] if "WORLD_SIZE" in os.environ else _visible_gpus(), list[str]()
    cure = "use the CPU with `CUDA_VISIBLE_DEVICES=`"
    if gpus and (version := metadata.version("torch")).endswith("+cpu"):
        raise WxbError(f"torch {version} uses no GPU: install a build for CUDA, or {cure}")
    if 0 < len(gpus) < count:
        fault = f"training.processes is {count}, but there are {len(gpus)} GPUs"
        raise WxbError(f"{fault}; lower it, or {cure}")
    folder = Path(tempfile.gettempdir(), f"wxb-{os.getuid()}")
    with ExitStack() as locks:
        for level, gpu in product(range(100), gpus):
            if gpu not in chosen and len(chosen) < count:
                lock = FileLock(folder / f"{gpu}.{level}.lock", fallback_to_soft=False)
                with suppress(Timeout):
                    locks.enter_context(lock.acquire(blocking=False))
                    chosen.append(gpu)
        if chosen:
            os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(chosen)
        else:  # without nvidia-smi, transformers would multiply the batch size by the GPUs
            os.environ.setdefault("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(count))))
        yield


def _visible_gpus() -> list[str]:
    """The GPUs in CUDA_VISIBLE_DEVICES, except -1; if unset, the UUIDs that nvidia-smi lists."""
    names, tool = os.environ.get("CUDA_VISIBLE_DEVICES"), shutil.which("nvidia-smi")
    if names is None and tool:
        query = [tool, "--query-gpu=uuid", "--format=csv,noheader"]
        lines = subprocess.run(query, capture_output=True, text=True, check=False).stdout.split()
        names = ",".join(line for line in lines if line.startswith("GPU-"))  # others are errors
    return [name for gpu in (names or "").split(",") if (name := gpu.strip()) not in ("", "-1")]
