"""Run `wxb mask` and `wxb unmask` as processes, with rules instead of a model."""

import subprocess
import sys
from pathlib import Path

from tests import forks

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-c", "from tests.masking.rules import main; main()"]
ENVIRONMENT = {"PYTHONPATH": str(ROOT), "PATH": "", "COLUMNS": "200", "NO_COLOR": "1"}
MASK = ("mask", "--experiment", "rules")


def write_files(folder, files):
    """Write files by their path in a folder, and return the folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def wxb(folder, *arguments, given=b"", **environment):
    return forks.command(
        "tests.masking.rules:main",
        *arguments,
        cwd=folder,
        path=[ROOT],
        env={**ENVIRONMENT, **environment},
        stdin=given,
    )


def output(folder, *arguments, **options):
    """Standard output of a command that must succeed without messages."""
    result = wxb(folder, *arguments, **options)
    assert (result.returncode, result.stderr) == (0, b"")
    return result.stdout


def start(folder, *arguments, **options):
    return subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )
