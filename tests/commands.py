"""Commands of the working folder, a project, run as a user does; and processes to be found."""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from tests import forked


def wxb(*arguments, cwd=".", path=(), given="", **environment):
    """The ended command `wxb` of a folder; modules of `path` and of the folder come before it."""
    env = {k: v for k, v in os.environ.items() if k != "COLUMNS"} | environment
    folder = Path(cwd).absolute()
    done = forked.command(
        "wxb.cli.app:main", *arguments, cwd=cwd, path=[*path, folder], env=env, given=given.encode()
    )
    done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
    assert "Traceback" not in done.stderr
    return done


@contextmanager
def asleep(*arguments):
    """The number of a process that does nothing, but has these arguments."""
    code = "import time; print(flush=True); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE)
    assert process.stdout
    try:
        process.stdout.readline()  # until then its arguments may still be those of this one
        yield process.pid
    finally:
        process.kill()
        process.communicate()
