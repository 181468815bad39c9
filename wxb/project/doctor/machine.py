"""The machine: Python, CPU, memory, disk, and what it knows of the hub."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from wxb.core.params import Params
from wxb.project.doctor import Finding, Level
from wxb.reporting.charts.formatting import size

GIB = 2**30
# A run of the demo wrote 0.25 GiB, and its largest process took 0.8 GiB of memory.
DISK, MEMORY = 1 * GIB, 1 * GIB
HUB_DISK = 40 * GIB  # the models and data of profile `full`, which are kept twice


def python() -> Iterator[Finding]:
    """The interpreter, and whether `python` in dvc.yaml is the same one."""
    yield Finding("Python", "ok", f"{platform.python_version()} at {sys.executable}")
    here = Path(sys.executable).parent
    on_path = shutil.which("python")
    if on_path is None or Path(on_path).parent.resolve() != here.resolve():
        yield Finding(
            "PATH",
            "problem",
            f"`python`, which `dvc repro` runs stages with, is {on_path or 'not found'}",
            f"source {here / 'activate'}"
            if (here / "activate").exists()
            else f'export PATH="{here}:$PATH"',
        )


def cpu(params: Params | None) -> Iterator[Finding]:
    """Cores that this process may use, beside the threads that params.yaml gives to a job."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if params is None or cores is None:
        yield Finding("CPU", "ok", f"{platform.machine()}, {cores or 'an unknown number of'} cores")
        return
    found = f"{platform.machine()}, {cores} core(s), {params.threads} thread(s) a job"
    if params.threads > cores:
        mend = f"set `threads: {cores}` in params.yaml; training slows down far more than by half"
        yield Finding("CPU", "note", found, mend)
    else:
        yield Finding("CPU", "ok", found)


def memory() -> Iterator[Finding]:
    """Memory of the machine, or of the container if that has less."""
    machine = psutil.virtual_memory()
    total, available, where = machine.total, machine.available, ""
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.exists() and (text := limit.read_text().strip()) != "max" and int(text) < total:
        used = int(limit.with_name("memory.current").read_text())
        total, where = int(text), " of this container"
        available = min(available, total - used)
    found = f"{size(available)} available of {size(total)}{where}"
    if available < MEMORY:
        yield Finding("memory", "note", f"{found}; the demo takes 0.8 GiB a job", "end other work")
    else:
        yield Finding("memory", "ok", found)


def disk(params: Params | None) -> Iterator[Finding]:
    """Room and permission to write, in the project and in the cache of the hub."""
    from huggingface_hub import constants

    wanted = _of_the_hub(params)
    free = shutil.disk_usage(".").free
    found = f"{size(free)} free for {Path.cwd()}"
    try:
        with tempfile.TemporaryFile(dir="."):
            pass
    except OSError as error:
        told = f"{Path.cwd()} cannot be written to: {error.strerror}"
        yield Finding("disk", "problem", told, "chown or chmod it, or work on a copy of your own")
    if free < DISK or (wanted and free < HUB_DISK):
        level: Level = "problem" if free < DISK else "note"
        yield Finding("disk", level, found, "wxb clean, then dvc gc --workspace")
    else:
        yield Finding("disk", "ok", found)
    cache = Path(constants.HF_HUB_CACHE)
    nearest = next(folder for folder in (cache, *cache.parents) if folder.exists())
    free, writable = shutil.disk_usage(nearest).free, os.access(nearest, os.W_OK)
    found = f"{size(free)} free for {cache}" + ("" if writable else ", which cannot be written to")
    if wanted and (free < HUB_DISK or not writable):
        yield Finding("hub cache", "note", found, "export HF_HOME=FOLDER, one with more room")
    else:
        yield Finding("hub cache", "ok", found)


def hub(params: Params | None) -> Iterator[Finding]:
    """Whether there is a token (which is never shown or used), and whether the hub may be asked."""
    # `get_token` of huggingface_hub may renew a token over the network.
    from huggingface_hub import constants

    wanted = _of_the_hub(params)
    names = ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"]
    file = Path(constants.HF_TOKEN_PATH)
    sources = [name for name in names if os.environ.get(name, "").strip()]
    if not sources and file.is_file() and file.read_text(encoding="utf-8").strip():
        sources = [str(file)]
    if sources:
        yield Finding("hub token", "ok", f"there is one, from {sources[0]}")
    elif wanted:
        found = f"none; public ones of {', '.join(wanted)} need none, gated ones (LLaMA) do"
        yield Finding("hub token", "note", found, "hf auth login")
    else:
        yield Finding("hub token", "ok", "none, and params.yaml names nothing of the hub")
    switches = ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE"]
    flags = [f"{name}={os.environ[name]}" for name in switches if os.environ.get(name)]
    if flags and wanted:
        mend = f"unset {' '.join(flag.partition('=')[0] for flag in flags)}"
        found = f"{', '.join(flags)}: {', '.join(wanted)} must be in the cache already"
        yield Finding("offline", "note", found, mend)
    else:
        yield Finding("offline", "ok", ", ".join(flags) or "not set")


def _of_the_hub(params: Params | None) -> list[str]:
    """The repositories of the hub that params.yaml names."""
    if params is None:
        return []
    checkpoints = [backbone.checkpoint for backbone in params.backbones.values()]
    models = [name for name in checkpoints if name and not Path(name).is_dir()]
    data = [corpus.hub.repository for corpus in params.corpora.values() if corpus.hub]
    return list(dict.fromkeys([*data, *models]))
