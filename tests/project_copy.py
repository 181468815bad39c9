"""Copies of this project with the profile tiny."""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from ruamel.yaml import YAML

from tests import commands, demo
from tests.demo import ROOT

OUTPUTS = {"data", "models", "logs", "reports", "site", "dvc.lock"}
DOTFILES = {".dvc", ".dvcignore", ".gitattributes", ".gitignore"}  # others are caches
BIN = Path(sys.executable).parent


class Project:
    """A copy of this project with the profile tiny, in git, without outputs; or its folder."""

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
        """Copy the sources, and set the profile `tiny`."""
        caches = {path.name for path in ROOT.glob(".*")} - DOTFILES
        shutil.copytree(
            ROOT,
            self.folder,
            ignore=lambda path, _: (
                OUTPUTS | caches if Path(path) == ROOT else {"__pycache__", "cache", "tmp"}
            ),
        )
        self.run("git", "init", "-q")
        self.reset()

    def reset(self):
        """Restore params.yaml, and set the profile `tiny`."""
        demo.write(self.folder)
        self.run("wxb", "params", "tiny")
        if platform.machine() != "x86_64":
            self.edit(lambda params: params.update(portable=False))  # other machines cannot be

    def copy(self, folder):
        """Copy the project to another folder; files of DVC's cache are links."""
        ignored = shutil.ignore_patterns(".snakemake", "__pycache__")
        shutil.copytree(self.folder, folder, ignore=ignored, copy_function=_copy)
        return type(self)(folder)

    def run(self, *command, **environment):
        """Run a command that must succeed; returns standard output and error."""
        code, output = self.attempt(*command, **environment)
        assert code == 0, output[-3000:]
        return output

    def attempt(self, *command, **environment):
        """Run a command; returns the exit status, and standard output and error."""
        environment = {**self.environment, **environment}
        if command[0] == "wxb":
            done = commands.wxb(*command[1:], cwd=self.folder, **environment)
        else:
            done = subprocess.run(
                command, cwd=self.folder, env=environment, capture_output=True, text=True
            )
        return done.returncode, done.stdout + done.stderr

    def start(self, *command):
        """Start a command in the background; its output is a pipe."""
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def edit(self, change):
        """Change the content of params.yaml with a function."""
        path = self.folder / "params.yaml"
        params = YAML().load(path)
        change(params)
        YAML().dump(params, path)


def keep_experiments(params, names):
    """Leave these experiments of the study `ner`, without checks of portable bytes."""
    params["portable"] = False  # it doubles the time
    params["studies"]["ner"] |= {"experiments": names, "question": None}
    for name in {*params["experiments"]} - {*names}:
        del params["experiments"][name]


def _copy(source, target):
    """Copy a file with its times; link files of DVC's cache, which never change."""
    cached = "/.dvc/cache/files/" in str(source)
    (os.link if cached else shutil.copy2)(source, target)
