"""`wxb mask` and `wxb unmask` as processes, with rules in place of a model."""

import subprocess
import sys
from pathlib import Path

from tests import forked

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-c", "from tests.masking.rules import main; main()"]
ENVIRONMENT = {"PYTHONPATH": str(ROOT), "PATH": "", "COLUMNS": "200", "NO_COLOR": "1"}
MASK = ("mask", "--experiment", "rules")


def lay(folder, files):
    """Write files, by their path in a folder, and give it back."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def wxb(folder, *arguments, given=b"", **environment):
    return forked.command(
        "tests.masking.rules:main",
        *arguments,
        cwd=folder,
        path=[ROOT],
        env={**ENVIRONMENT, **environment},
        given=given,
    )


def done(folder, *arguments, **options):
    """Standard output of a command that must succeed and say nothing else."""
    told = wxb(folder, *arguments, **options)
    assert (told.returncode, told.stderr) == (0, b"")
    return told.stdout


def started(folder, *arguments, **options):
    return subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )
