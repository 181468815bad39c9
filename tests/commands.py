"""Commands of the working folder, a project, run as a user does; and processes to be found."""

import os
import pty
import select
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from tests import forked


def wxb(*arguments, cwd=".", path=(), given="", **environment):
    """The ended command `wxb` of a folder; modules of `path` and of the folder come before it."""
    env = os.environ | environment
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


class Terminal:
    """A program in a terminal: what is typed into it, and what it shows."""

    def __init__(self, *command, **environment):
        self.held, inner = pty.openpty()
        self.shown = ""
        self.process = subprocess.Popen(
            command,
            env={**os.environ, "TERM": "xterm", **environment},
            stdin=inner,
            stdout=inner,
            stderr=inner,
            start_new_session=True,
            # The terminal is that of the new session, so that Ctrl-C in it is for the program.
            preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)),
        )
        os.close(inner)

    def type(self, text):
        os.write(self.held, text.encode())

    def wait_for(self, text, typing=""):
        """Type something, and again after each second of silence, until a text is shown.

        A signal that comes just before the program waits for a line is seen with the next key.
        """
        ends = time.monotonic() + 60
        self.type(typing)
        while text not in self.shown:
            assert time.monotonic() < ends, self.shown
            if select.select([self.held], [], [], 1)[0]:
                self.shown += os.read(self.held, 4096).decode()
            else:
                self.type(typing)
        self.shown = self.shown.partition(text)[2]

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.held)
