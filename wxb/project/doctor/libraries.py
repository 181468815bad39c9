"""Torch and what stands on it: tried in a process of its own, beside all other checks.

They take seconds to import, and one that was built for another machine ends its process.
"""

from __future__ import annotations

import importlib
import json
import logging
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from wxb.core.errors import in_one_line
from wxb.core.params import Params
from wxb.project import doctor
from wxb.project.doctor import INSTALL, SECONDS, Check, Finding
from wxb.reporting.charts.formatting import size

NVIDIA = (Path("/proc/driver/nvidia/version"), Path("/dev/nvidiactl"), Path("/dev/dxg"))


@contextmanager
def tried() -> Iterator[Check]:
    """Start the process that tries them, and lend the check that hears what it found."""
    process = subprocess.Popen(
        [sys.executable, "-m", __name__],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )

    def heard() -> Iterator[Finding]:
        told, errors = process.communicate(timeout=SECONDS)
        if process.returncode:
            yield Finding("torch", "problem", _end(process.returncode, errors), INSTALL)
            return
        for line in told.splitlines():
            yield Finding(**json.loads(line))

    try:
        yield heard
    finally:
        process.kill()
        process.communicate()


def _end(code: int, errors: str) -> str:
    """How a process ended that tells nothing more."""
    how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
    said = errors.strip().splitlines()[-1:]
    return ": ".join([f"trying the libraries ended {how}", *said])


def main() -> None:
    """Print a finding a line, in JSON."""
    params, _ = doctor.parameters()
    checks: list[tuple[str, Check]] = [
        ("torch", torch),
        ("GPU", gpu),
        ("bitsandbytes", partial(bitsandbytes, params)),
    ]
    for finding in doctor.run(checks):
        print(json.dumps(finding._asdict()))


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
            f"{torch.cuda.get_device_name(number)}, {size(total)} ({size(free)} free),"
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
    """Let torch do meanwhile without its compiler, which takes longest of all to import.

    bitsandbytes asks for it as it is imported, and torch before the first call of an operation that
    it has no compiled code for; neither needs it: what cannot be compiled they run as it is.
    """
    import torch

    compiling, name = torch.compile, "torch._dynamo"
    there = sys.modules.get(name)
    absent: Any = SimpleNamespace(disable=lambda function, *_, **__: function)
    torch.compile = lambda function=None, **_: function  # type: ignore[assignment]
    sys.modules[name] = there or absent
    try:
        yield
    finally:
        torch.compile = compiling
        if there is None:
            del sys.modules[name]


def _line(error: BaseException) -> str:
    """An error on one line, cut where it gets long."""
    text = in_one_line(error)
    return text if len(text) < 200 else f"{text[:200]}..."


if __name__ == "__main__":
    main()
