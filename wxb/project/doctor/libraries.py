"""Checks of DVC, Snakemake, torch, transformers and bitsandbytes, in a process of their own.

They take seconds to import, and a build for another machine kills its process.
"""

from __future__ import annotations

import importlib
import json
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from wxb.core.errors import error_line
from wxb.project import doctor
from wxb.project.doctor import INSTALL, SECONDS, Check, Finding
from wxb.reporting.charts.formatting import size

if TYPE_CHECKING:
    from wxb.core.params import Params  # this import takes half as long as that of transformers

NVIDIA = (Path("/proc/driver/nvidia/version"), Path("/dev/nvidiactl"), Path("/dev/dxg"))


@contextmanager
def library_check(params: Params | None) -> Iterator[Check]:
    """Start the process of these checks, and yield the check that returns its findings.

    The process is killed when the context ends.
    """
    experiments = params.experiments if params else {}
    four_bit = [name for name, block in experiments.items() if block.tuning.four_bit]
    process = subprocess.Popen(
        [sys.executable, "-m", __name__, *four_bit],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )

    def check() -> Iterator[Finding]:
        output, errors = process.communicate(timeout=SECONDS)
        for line in output.splitlines():
            yield Finding(**json.loads(line))
        if process.returncode:
            yield Finding("libraries", "problem", _failure(process.returncode, errors), INSTALL)

    try:
        yield check
    finally:
        process.kill()
        process.communicate()


def _failure(code: int, errors: str) -> str:
    """How the process ended, and its last line of errors."""
    end = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
    return ": ".join([f"the check of libraries ended {end}", *errors.strip().splitlines()[-1:]])


def main() -> None:
    """Run the checks and print each finding as a line of JSON.

    The arguments are the experiments that need weights in 4 bits.
    """
    checks: list[tuple[str, Check]] = [
        ("libraries", versions),
        ("GPU", gpu),
        ("bitsandbytes", partial(bitsandbytes, sys.argv[1:])),
    ]
    for finding in doctor.run(checks):
        print(json.dumps(finding._asdict()), flush=True)


def versions() -> Iterator[Finding]:
    """Import the engines, torch and transformers: their versions, or errors."""
    for name in ("dvc", "snakemake", "torch", "transformers"):
        try:
            yield Finding(name, "ok", importlib.import_module(name).__version__)
        except Exception as error:  # broken builds raise various errors
            yield Finding(name, "problem", f"cannot be imported: {_line(error)}", INSTALL)


def gpu() -> Iterator[Finding]:
    """Each GPU that torch can use, with its memory; or why it can use none."""
    import torch

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        usable = torch.cuda.is_available()
    if not usable:
        yield _no_gpu(torch.version.cuda, [str(warning.message) for warning in caught])
        return
    bf16 = "bf16" if torch.cuda.is_bf16_supported() else "no bf16"
    for index in range(torch.cuda.device_count()):
        free, total = torch.cuda.mem_get_info(index)
        message = (
            f"{torch.cuda.get_device_name(index)}, {size(total)} ({size(free)} free),"
            f" CUDA {torch.version.cuda}, {bf16}"
        )
        is_busy = free < total / 2
        remedy = "nvidia-smi lists its processes; CUDA_VISIBLE_DEVICES selects another GPU"
        yield Finding("GPU", "note" if is_busy else "ok", message, remedy if is_busy else "")


def _no_gpu(cuda: str | None, warned: list[str]) -> Finding:
    """Why torch can use no GPU; `cuda` is the version that torch was built for."""
    if not any(path.exists() for path in NVIDIA):
        build = "" if cuda else "; this torch is built for the CPU"
        return Finding("GPU", "ok", f"none; profiles tiny and demo need none{build}")
    if cuda is None:
        message = "there is an NVIDIA driver, but this torch is built for the CPU"
        return Finding("GPU", "note", message, f"pip uninstall -y torch && {INSTALL}")
    reason = warned[0].splitlines()[0] if warned else "CUDA_VISIBLE_DEVICES may hide it"
    message = f"there is an NVIDIA driver, but torch (CUDA {cuda}) finds no GPU: {reason}"
    return Finding("GPU", "note", message, "nvidia-smi")


def bitsandbytes(users: Sequence[str]) -> Iterator[Finding]:
    """Quantize a few weights to 4 bits and back; a problem only if an experiment needs it."""
    try:
        import torch

        with _without_compiler():
            from bitsandbytes import __version__, functional

            device = "cuda" if torch.cuda.is_available() else "cpu"
            weights = torch.linspace(-1, 1, 64, device=device)
            packed, scale = functional.quantize_4bit(weights, quant_type="nf4")
            deviation = float((functional.dequantize_4bit(packed, scale) - weights).abs().max())
    except Exception as error:  # kernels for another machine raise various errors
        message = f"cannot keep weights in 4 bits: {_line(error)}"
    else:
        if deviation < 0.2:  # NF4's widest gap is 0.30
            message = f"{__version__}; weights in 4 bits work on the {device}"
            yield Finding("bitsandbytes", "ok", message)
            return
        message = f"{__version__} returns wrong weights: off by {deviation:.2f} of 1"
    if users:
        remedy = f"{INSTALL}, or set tuning.four_bit: false of {', '.join(users)}"
        yield Finding("bitsandbytes", "problem", message, remedy)
    else:
        yield Finding("bitsandbytes", "note", message)


@contextmanager
def _without_compiler() -> Iterator[None]:
    """Replace torch's compiler, which takes twice as long to import as all else here.

    bitsandbytes imports it, and so does torch before some operations. Both run without it.
    """
    import torch

    name, compile_ = "torch._dynamo", torch.compile
    module = sys.modules.get(name)
    stub: Any = SimpleNamespace(disable=lambda function, *_, **__: function)
    torch.compile = lambda function=None, **_: function  # type: ignore[assignment]
    sys.modules[name] = module or stub
    try:
        yield
    finally:
        torch.compile = compile_
        if module is None:
            del sys.modules[name]


def _line(error: BaseException) -> str:
    """An error on one line of 200 characters at most."""
    text = error_line(error)
    return text if len(text) < 200 else f"{text[:200]}..."


if __name__ == "__main__":
    main()
