"""Set the threads and CPU kernels of libraries: `threads` and `portable` of params.yaml.

Libraries choose kernels by the CPU, and read these settings from the environment on import.
"""

import os
import platform
import re
import sys
from pathlib import Path

from wxb.core.errors import WxbError
from wxb.core.params import Params, load_for_stage

# These limit each library to kernels that all x86-64 CPUs with AVX2 have. MKL also has a setting
# for AVX2, but ignores it on CPUs of AMD (MKL_VERBOSE=1 shows this).
PORTABLE = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_CBWR": "COMPATIBLE",
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
}


def set_environment() -> None:
    """Set threads, AVX2 kernels if `portable`, and no torch.compile, if params.yaml is valid."""
    try:
        params = load_for_stage()
    except WxbError:
        return  # `run` reports it
    if params.portable:
        os.environ.update(PORTABLE)
    for pool in ("OMP", "MKL", "OPENBLAS", "RAYON"):
        os.environ[f"{pool}_NUM_THREADS"] = str(params.threads)
    os.environ["TOKENIZERS_PARALLELISM"] = str(params.threads > 1).lower()
    # No stage compiles models, and bitsandbytes would load the compiler, which takes a second.
    os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")


def require_portable(params: Params) -> None:
    """Raise WxbError if `portable` is set and torch is imported with other kernels than AVX2."""
    torch = sys.modules.get("torch")
    capability = torch.backends.cpu.get_cpu_capability() if torch is not None else "AVX2"
    if params.portable and capability != "AVX2":
        raise WxbError(
            f"portable: torch uses {capability} on this CPU ({cpu_model()}); expected AVX2: set"
            " `portable: false` in params.yaml, and expect rounding differences"
        )


def cpu_model() -> str:
    """The model of the CPU that Linux lists, else what `platform` says."""
    cpuinfo = Path("/proc/cpuinfo")  # on Linux
    text = cpuinfo.read_text(encoding="utf-8") if cpuinfo.exists() else ""
    model = re.search(r"^model name\s*: (.+)$", text, re.MULTILINE)
    return model[1] if model else platform.processor() or platform.machine()
