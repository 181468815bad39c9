"""Run commands and terminals as a user does."""

import contextlib
import os
import pty
import select
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from tests import forks


def wxb(*arguments, cwd=".", path=(), stdin="", **environment):
    """Run `wxb` in a folder to its end; imports search `path` and the folder first."""
    env = os.environ | environment
    folder = Path(cwd).absolute()
    given = {"cwd": cwd, "path": [*path, folder], "stdin": stdin.encode("utf-8", "surrogateescape")}
    done = forks.command("wxb.cli.app:main", *arguments, **given, env=env)
    done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
    assert "Traceback" not in done.stderr
    return done


def printed_by(code, folder):
    """What Python code prints in a new process that works in a folder."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


@contextmanager
def sleeping_process(*arguments):
    """The PID of a process that sleeps, with these arguments."""
    code = "import time; print(flush=True); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE)
    assert process.stdout
    try:
        process.stdout.readline()  # before, its arguments may be those of its parent
        yield process.pid
    finally:
        process.kill()
        process.communicate()


class Terminal:
    """A program in a pseudo-terminal."""

    def __init__(self, *command, **environment):
        self.terminal, inner = pty.openpty()
        self.output = ""
        self.process = subprocess.Popen(
            command,
            env={**os.environ, "TERM": "xterm", **environment},
            stdin=inner,
            stdout=inner,
            stderr=inner,
            start_new_session=True,
            # Make it the terminal of the new session, so that Ctrl-C interrupts the program.
            preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)),
        )
        os.close(inner)

    def type(self, text):
        os.write(self.terminal, text.encode())

    def wait_for(self, text, typing=""):
        """Wait until a text is in the output; type something first, and after each silent second.

        The program notices a signal just before it reads a line only with the next key.
        """
        deadline = time.monotonic() + 60
        self.type(typing)
        while text not in self.output:
            assert time.monotonic() < deadline, self.output
            if select.select([self.terminal], [], [], 1)[0]:
                self.output += os.read(self.terminal, 4096).decode()
            else:
                self.type(typing)
        self.output = self.output.partition(text)[2]

    def end(self, typing):
        """Type a text each second until the program ends: between two prompts a key is lost."""
        for _ in range(30):
            self.type(typing)
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self.process.wait(1)
        raise AssertionError(self.output)

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.terminal)
