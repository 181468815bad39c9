import json

import pytest

from tests import demo
from tests.runtime.toy import python


@pytest.fixture
def project(tmp_path):
    """A folder with the committed parameters."""
    demo.write(tmp_path)
    return tmp_path


@pytest.mark.parametrize("stage", ["download", "preprocess"])
def test_an_unknown_name_is_an_error_with_the_nearest(project, stage):
    failed = python(project, "-m", f"stages.{stage}", "pij")
    assert failed.returncode == 1
    assert f"The last lines of logs/{stage}@pij.log:" in failed.stderr
    assert "corpora has no 'pij'; did you mean 'pii'? (choose from: pii)" in failed.stderr
    assert f"dvc repro --single-item {stage}@pij" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert sorted(p.name for p in project.iterdir()) == [".wxb", "logs", "params.yaml"]


def test_download_then_preprocess_a_corpus_of_ones_own(project):
    params = (project / "params.yaml").read_text(encoding="utf-8")
    generate = params[params.index("    generate:") : params.index("    hub:")]
    params = params.replace(generate, "").replace("path: demos/pii ", "path: mine.jsonl ")
    further = params[params.index("      further:") : params.index("\nbackbones:")]
    params = params.replace(further, "")
    (project / "params.yaml").write_text(params, encoding="utf-8")
    lines = [{"input": f"text {chr(945 + i)}", "spans": [], "template": i} for i in range(40)]
    mine = project / "mine.jsonl"
    mine.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")

    missing = python(project, "-m", "stages.preprocess", "pii")
    assert missing.returncode == 1
    assert "data/raw/pii: found nothing; expected a file ending in .json" in missing.stderr

    downloaded = python(project, "-m", "stages.download", "pii")
    assert downloaded.returncode == 0, downloaded.stderr
    assert (project / "data/raw/pii/mine.jsonl").read_bytes() == mine.read_bytes()

    cleaned = python(project, "-m", "stages.preprocess", "pii")
    assert cleaned.returncode == 0, cleaned.stderr
    profile = json.loads((project / "data/clean/pii/profile.json").read_text())
    assert profile["records"] == {"raw": 40, "rejected": 0, "train": 34, "valid": 2, "test": 4}
    assert not [p for p in project.rglob("*") if p.name.endswith(".partial")]
