"""The threads and CPU kernels that libraries compute with: `threads` and `portable` of params.yaml.

Each library picks its kernels by the CPU, and reads these settings from the environment when it is
imported.
"""

from __future__ import annotations

import logging
import os
import platform
import re
import sys
from pathlib import Path

from wxb.core.errors import WxbError
from wxb.core.params import Params, load

# These hold each library to the kernels of every x86-64 CPU with AVX2. MKL has a branch for AVX2
# too, but takes no notice of it on AMD's CPUs (MKL_VERBOSE=1 tells).
PORTABLE = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_CBWR": "COMPATIBLE",
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
}


def prepare() -> None:
    """Set the environment of the libraries that compute, before they are imported."""
    # On import it warns every stage of a kernel that is not installed.
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
    try:
        params = load()
    except WxbError:
        return  # `run` reports it
    if params.portable:
        os.environ.update(PORTABLE)
    for pool in ("OMP", "MKL", "OPENBLAS", "RAYON"):
        os.environ[f"{pool}_NUM_THREADS"] = str(params.threads)
    os.environ["TOKENIZERS_PARALLELISM"] = str(params.threads > 1).lower()
    # Nothing here is compiled, and the compiler that bitsandbytes loads takes each stage a second.
    os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")


def check(params: Params) -> None:
    """Raise WxbError if `portable` is set and torch, if it is imported, has other kernels."""
    torch = sys.modules.get("torch")
    capability = torch.backends.cpu.get_cpu_capability() if torch is not None else "AVX2"
    if params.portable and capability != "AVX2":
        raise WxbError(
            f"portable: found {cpu()}, where torch computes with {capability}; expected an x86-64"
            " CPU with AVX2, as the same bytes are promised on those alone: set `portable: false`"
            " in params.yaml, and expect other last digits"
        )


def cpu() -> str:
    """The model of this machine's CPU: bytes are promised on one kind only."""
    cpuinfo = Path("/proc/cpuinfo")  # Linux has it
    text = cpuinfo.read_text(encoding="utf-8") if cpuinfo.exists() else ""
    model = re.search(r"^model name\s*: (.+)$", text, re.MULTILINE)
    return model[1] if model else platform.processor() or platform.machine()
