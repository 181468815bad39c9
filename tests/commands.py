"""Commands of the working folder, a project, run as a user does; and processes to be found."""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path


def wxb(*arguments, path=(), **environment):
    """The ended command `wxb` of the working folder; modules of `path` come before it."""
    command = [sys.executable, "-c", "from wxb.cli.app import main; main()", *arguments]
    modules = os.pathsep.join(map(str, [*path, Path.cwd()]))
    env = {k: v for k, v in os.environ.items() if k != "COLUMNS"}
    env |= {"PYTHONPATH": modules, **environment}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    return done


@contextmanager
def asleep(*arguments):
    """The number of a process that does nothing, but has these arguments."""
    command = [sys.executable, "-c", "import time; time.sleep(60)", *arguments]
    process = subprocess.Popen(command)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()
