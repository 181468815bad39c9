"""A stage whose behaviour depends on its name, and processes that run it."""

import os
import subprocess
import sys
import time
from contextlib import contextmanager

from tests.project_copy import ROOT

TOY = """
import atexit, os, signal, subprocess, sys, time
import stages
from pathlib import Path
from wxb.core.errors import WxbError
from wxb.core.files import publish
from wxb.core.progress import Progress
from wxb.runtime.command import run

def wait():
    deadline = time.monotonic() + 20
    with open("events", "a") as events:
        print("begin", file=events, flush=True)
        while not Path("go").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        print("end", file=events)

def leave_children():
    run = subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    Path("children").write_text(f"{run.pid} {child}")
    os.kill(os.getpid(), signal.SIGKILL)

def main(params, name):
    if name == "full":
        raise OSError(28, "No space left on device", "out")
    if name == "slow":
        return wait()
    if name == "import":
        import careless
        time.sleep(20)
    if name == "parent" and not Path("children").exists():
        leave_children()
    print("to standard output")
    print("to standard error", file=sys.stderr)
    os.system("echo from a child")
    Progress("toy@" + name, 2).update(2)
    with publish("out") as (draft,):
        draft.write_text(os.environ["OMP_NUM_THREADS"])
        if name == "wrong":
            raise WxbError("found this; expected that; do so")
        if name == "broken":
            raise ZeroDivisionError("a defect")
    atexit.register(Path("slowly").touch)

run("toy", main, "A toy.")
"""


@contextmanager
def start(project, *arguments, **options):
    """Start a process, and kill it at the end."""
    process = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=project,
        env={**os.environ, "PYTHONPATH": f"{project}{os.pathsep}{ROOT}"},
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def events(project, count):
    """Wait until the toy has written `count` events, and return all."""
    deadline = time.monotonic() + 60
    path = project / "events"
    while not path.exists() or len(path.read_text().splitlines()) < count:
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)
    return path.read_text().splitlines()


def python(project, *arguments):
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
