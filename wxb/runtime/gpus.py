"""GPUs of this machine, divided among the stages that run at once."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from filelock import FileLock, Timeout


@contextmanager
def reserved(count: int) -> Iterator[None]:
    """Show torch only `count` GPUs: those that no other stage uses, if there are enough.

    If there are too few, stages share them: the engine decides how many stages run at once.
    """
    with ExitStack() as held:
        free: list[str] = []
        taken: list[str] = []
        for gpu in _visible():
            path = Path(tempfile.gettempdir(), f"wxb-{getpass.getuser()}", f"{gpu}.lock")
            path.parent.mkdir(exist_ok=True)
            lock = FileLock(path, fallback_to_soft=False)
            try:
                if len(free) < count:
                    held.enter_context(lock.acquire(blocking=False))
                    free.append(gpu)
            except Timeout:
                taken.append(gpu)
        if free or taken:
            os.environ["CUDA_VISIBLE_DEVICES"] = ",".join([*free, *taken][:count])
        yield


def _visible() -> list[str]:
    """The names that CUDA gives to the GPUs that may be used here."""
    variable = os.environ.get("CUDA_VISIBLE_DEVICES")
    if variable is not None:
        return [gpu.strip() for gpu in variable.split(",") if gpu.strip()]
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    query = [tool, "--query-gpu=uuid", "--format=csv,noheader"]
    return subprocess.run(query, capture_output=True, text=True, check=False).stdout.split()
