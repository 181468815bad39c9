import shutil
from contextlib import chdir
from pathlib import Path

import pytest
from dvc.repo import Repo

from tests.project.toy import DVC_YAML
from tests.repository import commit, git


@pytest.fixture(scope="session")
def committed_project(tmp_path_factory):
    """A committed project with three stages that are up to date."""
    folder = tmp_path_factory.mktemp("toy") / "project"
    folder.mkdir()
    with chdir(folder):
        git("init", "-q")
        Repo.init().close()
        Path("dvc.yaml").write_text(DVC_YAML)
        Path("params.yaml").write_text("rate: 1\n")
        Path("source").write_text("a source\n")
        with Repo() as repo:
            repo.reproduce()
        commit()
    return folder


@pytest.fixture
def toy_project(committed_project, tmp_path, monkeypatch):
    """The working folder: a copy of the committed project."""
    monkeypatch.chdir(shutil.copytree(committed_project, tmp_path / "project"))
    return tmp_path / "project"
