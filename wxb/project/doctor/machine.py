"""The machine: Python, torch, GPU, CPU, memory, disk, and what it knows of the hub."""

from __future__ import annotations

import importlib
import logging
import os
import platform
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from wxb.errors import in_one_line
from wxb.params import Params
from wxb.project.doctor import Finding, Level

GIB = 2**30
# A run of the demo wrote 0.25 GiB, and its largest process took 0.8 GiB of memory.
DISK, MEMORY = 1 * GIB, 1 * GIB
HUB_DISK = 40 * GIB  # the models and data of profile `full`, which are kept twice

NVIDIA = (Path("/proc/driver/nvidia/version"), Path("/dev/nvidiactl"), Path("/dev/dxg"))
INSTALL = "pip install --requirement requirements.txt"


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


def torch() -> Iterator[Finding]:
    """Torch and transformers: the versions that really load."""
    for name in ("torch", "transformers"):
        try:
            yield Finding(name, "ok", importlib.import_module(name).__version__)
        except (ImportError, OSError) as error:  # OSError: of a shared library
            yield Finding(name, "problem", f"cannot be imported: {_line(error)}", INSTALL)


def gpu() -> Iterator[Finding]:
    """Each GPU that torch can use, with its memory; or why there is none."""
    import torch

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        usable = torch.cuda.is_available()
    if not usable:
        yield _no_gpu(torch.version.cuda, [str(warning.message) for warning in told])
        return
    bf16 = "bf16" if torch.cuda.is_bf16_supported() else "no bf16"
    for number in range(torch.cuda.device_count()):
        free, total = torch.cuda.mem_get_info(number)
        found = (
            f"{torch.cuda.get_device_name(number)}, {_gib(total)} ({_gib(free)} free),"
            f" CUDA {torch.version.cuda}, {bf16}"
        )
        busy = free < total / 2
        mend = "nvidia-smi tells who uses it; CUDA_VISIBLE_DEVICES chooses another"
        yield Finding("GPU", "note" if busy else "ok", found, mend if busy else "")


def _no_gpu(cuda: str | None, warned: list[str]) -> Finding:
    if not any(path.exists() for path in NVIDIA):
        hidden = "" if cuda else "; this torch is built for the CPU"
        return Finding("GPU", "ok", f"none; profiles tiny and demo need none{hidden}")
    if cuda is None:
        found = "there is an NVIDIA driver, but this torch is built for the CPU"
        return Finding("GPU", "note", found, f"pip uninstall -y torch && {INSTALL}")
    why = warned[0].splitlines()[0] if warned else "it may be hidden by CUDA_VISIBLE_DEVICES"
    found = f"there is an NVIDIA driver, but torch (CUDA {cuda}) finds no GPU: {why}"
    return Finding("GPU", "note", found, "nvidia-smi")


def bitsandbytes(params: Params | None) -> Iterator[Finding]:
    """Whether weights can be kept in 4 bits here, by trying it on a few."""
    experiments = params.experiments if params else {}
    needed = [name for name, block in experiments.items() if block.tuning.four_bit]
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
    try:
        import torch

        with _uncompiled():
            from bitsandbytes import __version__, functional

        device = "cuda" if torch.cuda.is_available() else "cpu"
        weights = torch.linspace(-1, 1, 64, device=device)
        packed, scale = functional.quantize_4bit(weights, quant_type="nf4")
        off = float((functional.dequantize_4bit(packed, scale) - weights).abs().max())
    except Exception as error:  # whatever a kernel that was built for another machine raises
        found = f"cannot keep weights in 4 bits: {_line(error)}"
    else:
        if off < 0.2:  # NF4's widest gap is 0.30
            found = f"{__version__}; weights in 4 bits work on the {device}"
            yield Finding("bitsandbytes", "ok", found)
            return
        found = f"{__version__} gives wrong weights back: off by {off:.2f} of 1"
    if needed:
        mend = f"{INSTALL}, or set tuning.four_bit: false of {', '.join(needed)}"
        yield Finding("bitsandbytes", "problem", found, mend)
    else:
        yield Finding("bitsandbytes", "note", found)


@contextmanager
def _uncompiled() -> Iterator[None]:
    """Leave alone what is given to `torch.compile` meanwhile.

    Its compiler takes longer to import than all checks take together. bitsandbytes asks for it as
    it is imported, and has no need of it: what cannot be compiled it runs as it is.
    """
    import torch

    compiling = torch.compile
    torch.compile = lambda function=None, **_: function  # type: ignore[assignment]
    try:
        yield
    finally:
        torch.compile = compiling


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
    found = f"{_gib(available)} available of {_gib(total)}{where}"
    if available < MEMORY:
        yield Finding("memory", "note", f"{found}; the demo takes 0.8 GiB a job", "end other work")
    else:
        yield Finding("memory", "ok", found)


def disk(params: Params | None) -> Iterator[Finding]:
    """Room and permission to write, in the project and in the cache of the hub."""
    from huggingface_hub import constants

    wanted = _of_the_hub(params)
    free = shutil.disk_usage(".").free
    found = f"{_gib(free)} free for {Path.cwd()}"
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
    found = f"{_gib(free)} free for {cache}" + ("" if writable else ", which cannot be written to")
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


def _gib(size: float) -> str:
    return f"{size / GIB:.1f} GiB"


def _line(error: BaseException) -> str:
    """An error on one line, cut where it gets long."""
    text = in_one_line(error)
    return text if len(text) < 200 else f"{text[:200]}..."
