import json

import pytest

from tests.runtime.toy import python


@pytest.mark.parametrize("stage", ["download", "preprocess"])
def test_an_unknown_name_is_an_error_with_the_nearest(cwd, params, stage):
    failed = python(cwd, "-m", f"stages.{stage}", "pij")
    assert failed.returncode == 1
    assert "corpora has no 'pij'; did you mean 'pii'? (choose from: pii)" in failed.stderr
    assert sorted(p.name for p in cwd.iterdir()) == [".wxb", "logs", "params", "params.yaml"]


def test_download_then_preprocess_a_corpus_of_ones_own(cwd, params):
    text = params.read_text(encoding="utf-8")
    generate = text[text.index("    generate:") : text.index("    hub:")]
    text = text.replace(generate, "").replace("path: demos/pii ", "path: mine.jsonl ")
    further = text[text.index("      further:") : text.index("\nbackbones:")]
    params.write_text(text.replace(further, ""), encoding="utf-8")
    lines = [{"input": f"text {chr(945 + i)}", "spans": [], "template": i} for i in range(40)]
    mine = cwd / "mine.jsonl"
    mine.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")

    missing = python(cwd, "-m", "stages.preprocess", "pii")
    assert missing.returncode == 1
    assert "data/raw/pii: found nothing; expected a file ending in .json" in missing.stderr

    downloaded = python(cwd, "-m", "stages.download", "pii")
    assert downloaded.returncode == 0, downloaded.stderr
    assert (cwd / "data/raw/pii/mine.jsonl").read_bytes() == mine.read_bytes()

    cleaned = python(cwd, "-m", "stages.preprocess", "pii")
    assert cleaned.returncode == 0, cleaned.stderr
    profile = json.loads((cwd / "data/clean/pii/profile.json").read_text())
    assert profile["records"] == {"raw": 40, "rejected": 0, "train": 34, "valid": 2, "test": 4}
    assert not [p for p in cwd.rglob("*") if p.name.endswith(".partial")]
