"""Checks of the machine: Python, CPU, memory, disk, and access to the hub."""

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
from wxb.core.wording import counted
from wxb.project.doctor import Finding, Level
from wxb.reporting.charts.formatting import size

GIB = 2**30
# A run of the demo wrote 0.25 GiB, and its largest process used 0.8 GiB of memory.
DISK, MEMORY = 1 * GIB, 1 * GIB
HUB_DISK = 40 * GIB  # models and data of profile `full`, stored twice


def python() -> Iterator[Finding]:
    """The interpreter, and whether `python` on the PATH is the same one."""
    yield Finding("Python", "ok", f"{platform.python_version()} at {sys.executable}")
    folder = Path(sys.executable).parent
    on_path = shutil.which("python")
    if on_path is None or Path(on_path).parent.resolve() != folder.resolve():
        yield Finding(
            "PATH",
            "problem",
            f"`python`, with which `dvc repro` runs stages, is {on_path or 'not found'}",
            f"source {folder / 'activate'}"
            if (folder / "activate").exists()
            else f'export PATH="{folder}:$PATH"',
        )


def cpu(params: Params | None) -> Iterator[Finding]:
    """The cores that this process may use, compared with `threads` in params.yaml."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if params is None or cores is None:
        yield Finding("CPU", "ok", f"{platform.machine()}, {cores or 'an unknown number of'} cores")
        return
    counts = f"{counted(cores, 'cores')}, {counted(params.threads, 'threads')} per job"
    message = f"{platform.machine()}, {counts}"
    if params.threads > cores:
        remedy = f"set `threads: {cores}` in params.yaml: more threads slow training down by far"
        yield Finding("CPU", "note", message, remedy)
    else:
        yield Finding("CPU", "ok", message)


def memory() -> Iterator[Finding]:
    """Available memory of the machine, or of the container if it has less."""
    machine = psutil.virtual_memory()
    total, available, suffix = machine.total, machine.available, ""
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.exists() and (text := limit.read_text().strip()) != "max" and int(text) < total:
        used = int(limit.with_name("memory.current").read_text())
        total, suffix = int(text), " of this container"
        available = min(available, total - used)
    message = f"{size(available)} available of {size(total)}{suffix}"
    if available < MEMORY:
        message += "; the demo needs 0.8 GiB per job"
        yield Finding("memory", "note", message, "end other processes")
    else:
        yield Finding("memory", "ok", message)


def disk(params: Params | None) -> Iterator[Finding]:
    """Free space and write permission, in the project and in the cache of the hub."""
    from huggingface_hub import constants

    repositories = _hub_repositories(params)
    free = shutil.disk_usage(".").free
    message = f"{size(free)} free for {Path.cwd()}"
    try:
        with tempfile.TemporaryFile(dir="."):
            pass
    except OSError as error:
        fault = f"{Path.cwd()} cannot be written to: {error.strerror}"
        yield Finding("disk", "problem", fault, "chown or chmod it, or work on a copy")
    if free < DISK or (repositories and free < HUB_DISK):
        level: Level = "problem" if free < DISK else "note"
        yield Finding("disk", level, message, "wxb clean, then dvc gc --workspace")
    else:
        yield Finding("disk", "ok", message)
    cache = Path(constants.HF_HUB_CACHE)
    nearest = next(folder for folder in (cache, *cache.parents) if folder.exists())
    free, is_writable = shutil.disk_usage(nearest).free, os.access(nearest, os.W_OK)
    message = f"{size(free)} free for {cache}"
    message += "" if is_writable else ", which cannot be written to"
    if repositories and (free < HUB_DISK or not is_writable):
        yield Finding("hub cache", "note", message, "export HF_HOME=FOLDER with more space")
    else:
        yield Finding("hub cache", "ok", message)


def hub(params: Params | None) -> Iterator[Finding]:
    """Whether a token exists (it is never shown or used), and whether the hub is switched off."""
    # huggingface_hub.get_token may use the network to renew a token.
    from huggingface_hub import constants

    repositories = _hub_repositories(params)
    names = ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"]
    file = Path(constants.HF_TOKEN_PATH)
    sources = [name for name in names if os.environ.get(name, "").strip()]
    if not sources and file.is_file() and file.read_text(encoding="utf-8").strip():
        sources = [str(file)]
    if sources:
        yield Finding("hub token", "ok", f"there is one, from {sources[0]}")
    elif repositories:
        message = f"none; gated repositories of {', '.join(repositories)} (such as LLaMA) need one"
        yield Finding("hub token", "note", message, "hf auth login")
    else:
        yield Finding("hub token", "ok", "none, and params.yaml uses no hub repository")
    switches = ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE"]
    flags = [f"{name}={os.environ[name]}" for name in switches if os.environ.get(name)]
    if flags and repositories:
        remedy = f"unset {' '.join(flag.partition('=')[0] for flag in flags)}"
        message = f"{', '.join(flags)}: {', '.join(repositories)} must be in the cache"
        yield Finding("offline", "note", message, remedy)
    else:
        yield Finding("offline", "ok", ", ".join(flags) or "not set")


def _hub_repositories(params: Params | None) -> list[str]:
    """The hub repositories that params.yaml names."""
    if params is None:
        return []
    checkpoints = [backbone.checkpoint for backbone in params.backbones.values()]
    models = [name for name in checkpoints if name and not Path(name).is_dir()]
    data = [corpus.hub.repository for corpus in params.corpora.values() if corpus.hub]
    return list(dict.fromkeys([*data, *models]))
