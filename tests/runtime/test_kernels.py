from contextlib import nullcontext

import pytest
import torch

from tests.runtime.toy import python
from wxb.core.errors import WxbError
from wxb.core.params import load
from wxb.runtime import kernels


def test_threads_of_params_are_set(project):
    names = [f"{pool}_NUM_THREADS" for pool in ("OMP", "MKL", "OPENBLAS", "RAYON")]
    names.append("TOKENIZERS_PARALLELISM")
    code = f"import os, stages; print(*[os.environ[n] for n in {names}])"
    assert python(project, "-c", code).stdout == "3 3 3 3 true\n"


AVX2 = torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")
KERNELS = """
import stages, numpy, torch
from numpy._core._multiarray_umath import __cpu_features__
a = torch.randn(9, 9)
a @ a
print(torch.backends.cpu.get_cpu_capability(), __cpu_features__["X86_V4"])
torch.nn.functional.conv2d(torch.randn(8, 32, 8, 8), torch.randn(64, 32, 3, 3))
"""


@pytest.mark.slow
@pytest.mark.skipif(not AVX2, reason="this CPU has no AVX2")
def test_portable_limits_every_library_to_avx2(project, monkeypatch):
    path = project / "params.yaml"
    path.write_text(path.read_text().replace("portable: false", "portable: true"))
    for library in ("MKL", "ONEDNN"):
        monkeypatch.setenv(f"{library}_VERBOSE", "1")
    done = python(project, "-W", "ignore", "-c", KERNELS)
    assert "AVX2 False\n" in done.stdout
    if torch.backends.mkl.is_available():
        assert "CNR:COMPATIBLE" in done.stdout
    assert "isa:Intel AVX2\n" in done.stdout
    assert "avx512" not in done.stdout


def test_portable_is_an_error_if_torch_uses_other_kernels(project, monkeypatch):
    params = load(project / "params.yaml")
    portable = params.model_copy(update={"portable": True})
    for capability, is_error in {"AVX2": False, "DEFAULT": True, "AVX512": True}.items():
        monkeypatch.setattr(
            torch.backends.cpu, "get_cpu_capability", lambda value=capability: value
        )
        kernels.require_portable(params)
        with pytest.raises(WxbError, match="portable: false") if is_error else nullcontext():
            kernels.require_portable(portable)
