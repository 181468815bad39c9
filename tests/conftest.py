"""What every test process needs before it imports anything that computes."""

import os
import signal

from hypothesis import settings

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


# What takes minutes begins first, so that no process ends long after the others.
LONGEST = (
    *("test_pipeline.py", "test_resume.py", "test_engines.py"),
    *("test_docs.py", "test_processes.py", "test_lesson.py", "test_study.py"),
)


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.name not in LONGEST)


def pytest_addoption(parser):
    parser.addoption(
        "--kills", type=int, default=3, help="how often test_resume.py kills training (default: 3)"
    )
