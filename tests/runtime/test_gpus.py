import os

import pytest

from wxb.core.errors import WxbError
from wxb.runtime import gpus


def test_each_job_has_its_own_gpus(monkeypatch, tmp_path):
    monkeypatch.setattr(gpus.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a, GPU-b,GPU-c")

    def reserve(count):
        """Reserve GPUs for a job, as a new process would."""
        os.environ["CUDA_VISIBLE_DEVICES"] = "GPU-a,GPU-b,GPU-c"
        return gpus.reserve(count)

    with reserve(1):
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-a"
        with reserve(2):
            assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-b,GPU-c"
            with reserve(1):  # more jobs than GPUs share
                assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-a"
        with reserve(1):
            assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-b"
    with pytest.raises(WxbError, match="is 4, but there are 3 GPUs"):
        reserve(4).__enter__()
    for cpu_only in ("", "-1"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", cpu_only)
        with gpus.reserve(2):
            assert os.environ["CUDA_VISIBLE_DEVICES"] == cpu_only
