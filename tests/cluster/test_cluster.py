"""What of `make cluster` takes seconds; what is not installed here is skipped."""

import os
import re
import shlex
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.cluster import slurm, storage
from tests.project_copy import BIN, ROOT, Project
from tests.repository import commit, git


class Folder(Project):
    """A folder with DVC, and one file that it tracks."""

    def __init__(self, folder):
        self.folder = folder
        self.environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}


@pytest.mark.parametrize("kind", ["local", "ssh", "s3"])
@pytest.mark.slow
def test_what_was_pushed_is_pulled(kind, tmp_path, monkeypatch):
    if lacking := storage.lacking(kind):
        pytest.skip(f"not installed: {', '.join(lacking)} (make cluster)")
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.chdir(home)
    git("init", "-q")
    project = Folder(home)
    project.run("dvc", "init", "--quiet")
    (home / "model").write_text("weights")
    project.run("dvc", "add", "--quiet", "model")
    commit()
    with storage.storage(kind, tmp_path / "storage") as (address, settings):
        storage.share(project, kind, address, settings)
        said = storage.fetched(
            project, kind, tmp_path / "clone", settings, [["dvc", "pull"], ["dvc", "status"]]
        )
    assert (tmp_path / "clone/model").read_text() == "weights"
    assert "up to date" in said


def test_a_stage_is_a_job(tmp_path):
    lacking = slurm.lacking()
    if find_spec("snakemake_executor_plugin_slurm") is None:
        lacking.append("snakemake-executor-plugin-slurm")
    if lacking:
        pytest.skip(f"not installed: {', '.join(lacking)} (make cluster)")
    from tests.cluster.__main__ import SLURM

    project = Project(tmp_path / "project")
    project.edit(lambda params: params.update(resources={"download": {"mem_mb": 321}}))
    with slurm.cluster(nodes=1) as where:
        project.environment |= where
        said = project.run("snakemake", *SLURM, "download@pii")
        queue = project.run("squeue", "--states=all", "--noheader", "--format=%k|%m|%T")
    assert "has been submitted with SLURM jobid" in said
    assert queue.split() == ["rule_download@pii|321M|COMPLETED"]
    assert "download@pii" in (project.folder / "dvc.lock").read_text()
    assert any((project.folder / "data/raw/pii").iterdir())


def test_commands_of_the_page_are_run():
    """What `make cluster` runs has all words of a command, except addresses and values."""
    files = [*(ROOT / "tests/cluster").glob("*.py"), ROOT / "Makefile"]
    source = "\n".join(path.read_text() for path in files if path != Path(__file__))
    page = (ROOT / "docs/cluster.md").read_text()
    blocks = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    commands = [line for block in blocks for line in block.splitlines()]
    assert len(commands) > 12
    for command in commands:
        words = [word for word in shlex.split(command) if not re.search(r"[/=]|[A-Z]{3}", word)]
        assert [word for word in words[1:] if word not in source] == [], command
