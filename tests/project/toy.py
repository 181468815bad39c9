"""A project of DVC with a folder, a file, and metrics that git tracks."""

import os
from pathlib import Path

from dvc.repo import Repo

DVC_YAML = """
stages:
  make:
    cmd: mkdir -p made && cp source made/file && echo 1 > made/other && echo make >> ran
    deps: [source]
    params: [rate]
    outs: [made]
  use:
    cmd: cp made/file used && echo use >> ran
    deps: [made]
    outs: [used]
  score:
    cmd: "echo '{\\"f1\\": 0.5}' > score.json && echo score >> ran"
    deps: [used]
    metrics: [score.json: {cache: false}]
"""


def stages_run(**options):
    """Run `dvc repro` in this process; returns the stages that ran."""
    Path("ran").write_text("")
    with Repo() as repo:
        repo.reproduce(**options)
    return Path("ran").read_text().split()


def flip(path, index=0):
    """Change a bit of a file in place; its times and mode stay as they are."""
    status = path.stat()
    path.chmod(0o644)
    content = bytearray(path.read_bytes())
    content[index] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    path.chmod(status.st_mode)
