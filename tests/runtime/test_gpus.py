import os

from wxb.runtime import gpus


def test_each_job_has_gpus_of_its_own(monkeypatch, tmp_path):
    monkeypatch.setattr(gpus.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a, GPU-b,GPU-c")

    def shown(count):
        """What a job that needs so many is shown, while it runs."""
        os.environ["CUDA_VISIBLE_DEVICES"] = "GPU-a,GPU-b,GPU-c"
        return gpus.reserved(count)

    with shown(1):
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-a"
        with shown(2):
            assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-b,GPU-c"
            with shown(1):  # more jobs than GPUs share
                assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-a"
        with shown(1):
            assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-b"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with gpus.reserved(1):  # a CPU is asked for
        assert os.environ["CUDA_VISIBLE_DEVICES"] == ""
