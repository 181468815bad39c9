"""Stages on a GPU, if there is one: they use it, and predictions equal those on the CPU."""

import json
import shutil

import pytest


def predicted_spans(project):
    """The spans that ner-encoder found in each text."""
    rows = (project.folder / "reports/predictions/ner/ner-encoder/predictions.jsonl").read_text()
    return [json.loads(row)["predicted"] for row in rows.splitlines()]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvidia-smi") is None, reason="there is no NVIDIA GPU")
def test_stages_use_it_and_predict_what_the_cpu_does(built_project, tmp_path):
    project = built_project.copy(tmp_path / "project")
    del project.environment["CUDA_VISIBLE_DEVICES"]
    names = ["ner-encoder", "ner-generative-neftune"]  # the latter by QLoRA
    stages = [f"{verb}@{name}" for name in names for verb in ("train", "evaluate")]
    assert project.repro("--force", "--single-item", *stages) == {*stages}
    for stage in stages:
        cost = project.folder / "reports/cost" / f"{stage.replace('@', '/')}.json"
        assert json.loads(cost.read_text())["peak_gpu_memory_mib"] > 0, stage
    on_gpu = predicted_spans(project)
    assert any(on_gpu)
    project.repro("--force", "--single-item", "evaluate@ner-encoder", CUDA_VISIBLE_DEVICES="")
    pairs = [*zip(on_gpu, predicted_spans(project), strict=True)]
    assert sum(gpu != cpu for gpu, cpu in pairs) <= len(pairs) / 100  # scores near the threshold
