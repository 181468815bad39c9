import os
from contextlib import ExitStack

import pytest

from wxb.core.errors import WxbError
from wxb.runtime import gpus

VARIABLE = "CUDA_VISIBLE_DEVICES"


@pytest.fixture(autouse=True)
def torch_for_cuda(monkeypatch, tmp_path):
    """A build of torch for GPUs, and a folder for locks."""
    monkeypatch.setattr(gpus.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr("importlib.metadata.version", lambda _: "2.13.0")
    monkeypatch.setenv(VARIABLE, "")


def reserve(count, visible="GPU-a, GPU-b,GPU-c"):
    """Reserve GPUs for a job, as a new process would."""
    os.environ[VARIABLE] = visible
    return gpus.reserve(count)


def test_each_job_has_its_own_gpus(monkeypatch):
    with reserve(1):
        assert os.environ[VARIABLE] == "GPU-a"
        with reserve(2):
            assert os.environ[VARIABLE] == "GPU-b,GPU-c"
        with reserve(1):
            assert os.environ[VARIABLE] == "GPU-b"
    with pytest.raises(WxbError, match="is 4, but there are 3 GPUs"):
        reserve(4).__enter__()
    monkeypatch.setenv("WORLD_SIZE", "4")  # torchrun's processes choose among all
    with reserve(4):
        assert os.environ[VARIABLE] == "GPU-a, GPU-b,GPU-c"


def test_more_jobs_than_gpus_share_them_equally():
    used = []
    with ExitStack() as jobs:
        for _ in range(6):
            jobs.enter_context(reserve(1))
            used.append(os.environ[VARIABLE])
    assert sorted(used) == ["GPU-a", "GPU-a", "GPU-b", "GPU-b", "GPU-c", "GPU-c"]


def test_a_torch_for_cpus_is_refused_unless_gpus_are_hidden(monkeypatch):
    monkeypatch.setattr("importlib.metadata.version", lambda _: "2.13.0+cpu")
    with pytest.raises(WxbError, match=r"torch 2.13.0\+cpu uses no GPU: .*CUDA_VISIBLE_DEVICES="):
        reserve(1).__enter__()
    for cpu_only in ("", "-1"):
        with reserve(2, cpu_only):
            assert os.environ[VARIABLE] == cpu_only


# Without names of GPUs, transformers would use all that torch finds.
@pytest.mark.parametrize(("printed", "used"), [("GPU-a\nGPU-b", "GPU-a"), ("NVML failed", "0")])
def test_nvidia_smi_names_the_gpus(monkeypatch, tmp_path, printed, used):
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\necho '{printed}'\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    with gpus.reserve(1):
        assert os.environ.get(VARIABLE) == used
