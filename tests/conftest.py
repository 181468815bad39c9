"""Set up every test process before it imports numerical libraries."""

import atexit
import os
import re
import shutil
import signal
import tempfile
import time
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import settings

# The same environment for everyone, whatever the shell, terminal or settings.
PERSONAL = re.compile(
    r"(LC|XDG|GIT|DVC|HF|SNAKEMAKE)_.*|.*_COLORS?|CLICOLOR.*|LANGUAGE|COLUMNS|LINES|GITHUB_ACTIONS"
)
for name in [*filter(PERSONAL.fullmatch, os.environ)]:
    del os.environ[name]
os.environ.update(LC_ALL="C.UTF-8", LANG="C.UTF-8", TERM="xterm", TZ="UTC")
time.tzset()
if "PYTEST_XDIST_WORKER" not in os.environ:  # workers inherit the folder
    os.environ["HOME"] = tempfile.mkdtemp(prefix="home-")
    atexit.register(shutil.rmtree, os.environ["HOME"], ignore_errors=True)
os.environ["DVC_SITE_CACHE_DIR"] = f"{os.environ['HOME']}/dvc"

# No deadlines: a busy machine is not a failure. The same examples in each run, unless
# `pytest --hypothesis-profile random` searches for others.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.register_profile("random", deadline=None)
settings.load_profile("repeatable")

# One thread, as in the profiles tiny and demo: sums over threads may differ between runs.
for pool in ("OMP", "MKL", "OPENBLAS", "RAYON"):
    os.environ[f"{pool}_NUM_THREADS"] = "1"

# Tests compare with results of a CPU, and fork, which CUDA forbids. test_gpu.py uses the GPU.
os.environ["CUDA_VISIBLE_DEVICES"] = ""

# No test compiles, and bitsandbytes would load the compiler, which takes a second per process.
os.environ["TORCHDYNAMO_DISABLE"] = "1"


# Background jobs of a shell ignore Ctrl-C, and their child processes inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def cwd(tmp_path, monkeypatch):
    """The working folder, which is empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def params(cwd):
    """The committed params.yaml, in the working folder with its profiles."""
    from tests import demo

    shutil.copytree(demo.ROOT / "params", "params")
    return demo.write(Path())


@pytest.fixture(scope="session")
def built_project(tmp_path_factory):
    """A small project whose stages have run, for tests of all workers to copy."""
    from tests.small_project import SmallProject

    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder = shared / "built"
    folder.mkdir(exist_ok=True)
    with FileLock(folder / "lock"):
        if not (folder / "done").exists():
            shutil.rmtree(folder / "project", ignore_errors=True)  # left by a worker that failed
            SmallProject(folder / "project").build()
            (folder / "done").touch()
    return SmallProject(folder / "project")


@pytest.fixture(scope="module")
def ner_project(tmp_path_factory):
    """The folder of a new project with a trained NER model."""
    from tests.ner_project import create_project

    return create_project(tmp_path_factory.mktemp("project"))


# Tests that take minutes run first, so that all processes end at about the same time.
LONGEST = {f"test_{name}.py" for name in ("pipeline", "engines", "docs", "processes", "studies")}


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.name not in LONGEST)
