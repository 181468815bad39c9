"""What every test process needs before it imports anything that computes."""

import atexit
import os
import re
import shutil
import signal
import tempfile
import time

import pytest
from filelock import FileLock
from hypothesis import settings

# The same environment for everyone: no test may depend on a user's shell, terminal or settings.
PERSONAL = re.compile(
    r"(LC|XDG|GIT|DVC|HF|SNAKEMAKE)_.*|.*_COLORS?|CLICOLOR.*|LANGUAGE|COLUMNS|LINES|GITHUB_ACTIONS"
)
for name in [*filter(PERSONAL.fullmatch, os.environ)]:
    del os.environ[name]
os.environ.update(LC_ALL="C.UTF-8", LANG="C.UTF-8", TERM="xterm", TZ="UTC")
time.tzset()
if "PYTEST_XDIST_WORKER" not in os.environ:  # a worker inherits the folder
    os.environ["HOME"] = tempfile.mkdtemp(prefix="home-")
    atexit.register(shutil.rmtree, os.environ["HOME"], ignore_errors=True)
os.environ["DVC_SITE_CACHE_DIR"] = f"{os.environ['HOME']}/dvc"

# A busy machine is no failure: speed belongs in benchmarks.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# As in the pipeline at sizes tiny and demo: sums of more threads can differ from run to run.
for pool in ("OMP", "MKL", "OPENBLAS", "RAYON"):
    os.environ[f"{pool}_NUM_THREADS"] = "1"

# Nothing here is compiled, and the compiler that bitsandbytes loads takes every process a second.
os.environ["TORCHDYNAMO_DISABLE"] = "1"


# A shell's background jobs ignore Ctrl-C, and so would all that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The project at its smallest, which Snakemake has run; tests change copies.

    The first worker that needs it builds it for all.
    """
    from tests.built import Smallest

    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    folder = shared / "built"
    folder.mkdir(exist_ok=True)
    with FileLock(folder / "lock"):
        if not (folder / "done").exists():
            shutil.rmtree(folder / "project", ignore_errors=True)  # of a worker that failed
            Smallest(folder / "project").build()
            (folder / "done").touch()
    return Smallest(folder / "project")


# What takes minutes begins first, so that no process ends long after the others.
LONGEST = (
    *("test_pipeline.py", "test_resume.py", "test_engines.py"),
    *("test_docs.py", "test_processes.py", "test_lesson.py", "test_studies.py"),
)


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.name not in LONGEST)


def pytest_addoption(parser):
    parser.addoption(
        "--kills", type=int, default=3, help="how often test_resume.py kills training (default: 3)"
    )
