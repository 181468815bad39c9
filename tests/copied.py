"""A copy of this project at size tiny, for tests of what its commands do."""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from ruamel.yaml import YAML

from tests import commands

ROOT = Path(__file__).parents[1]
MADE = [".git", ".venv", ".snakemake", ".wxb", "data", "models", "logs", "reports", "dvc.lock"]
BIN = Path(sys.executable).parent


class Project:
    """A copy of this project at size tiny, in a git repository, with nothing made yet.

    In a folder that exists, it is what is there.
    """

    def __init__(self, folder):
        self.folder = folder
        self.environment = {
            **os.environ,
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "PYTHONPATH": str(folder),
        }
        if not folder.exists():
            self.create()

    def create(self):
        """Copy the sources, and switch to the profile `tiny`."""
        shutil.copytree(
            ROOT,
            self.folder,
            ignore=lambda path, names: (
                {*MADE} & {*names} if Path(path) == ROOT else {"__pycache__", "cache", "tmp"}
            ),
        )
        self.run("git", "init", "-q")
        self.reset()

    def reset(self):
        """Set the parameters to those of the profile `tiny`."""
        shutil.copy(ROOT / "params.yaml", self.folder)
        self.run("wxb", "params", "tiny")
        if platform.machine() != "x86_64":
            self.edit(lambda params: params.update(portable=False))  # nothing else can be

    def copy(self, folder):
        """A copy in another folder, with DVC's cache, whose files are shared."""
        ignored = shutil.ignore_patterns(".snakemake", "__pycache__")
        shutil.copytree(self.folder, folder, ignore=ignored, copy_function=_copy)
        return type(self)(folder)

    def run(self, *command, **environment):
        """Standard output and error of a command that must succeed."""
        code, output = self.attempt(*command, **environment)
        assert code == 0, output[-3000:]
        return output

    def attempt(self, *command, **environment):
        """Exit status of a command, and its standard output and error."""
        environment = {**self.environment, **environment}
        if command[0] == "wxb":
            done = commands.wxb(*command[1:], cwd=self.folder, **environment)
        else:
            done = subprocess.run(
                command,
                cwd=self.folder,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
        return done.returncode, done.stdout + done.stderr

    def start(self, *command):
        """A command that runs beside what follows; its output is to be read from it."""
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def edit(self, change):
        """Write the parameters as `change` leaves them."""
        path = self.folder / "params.yaml"
        params = YAML().load(path)
        change(params)
        YAML().dump(params, path)


def _copy(source, target):
    """Copy a file with its times; link one of DVC's cache, which nothing writes to."""
    cached = "/.dvc/cache/files/" in str(source)
    (os.link if cached else shutil.copy2)(source, target)
