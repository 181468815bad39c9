"""What `make cluster` runs."""

import re
import shlex
from pathlib import Path

from tests.project_copy import ROOT
from wxb.core.params import read_yaml


def test_the_gpus_of_a_job_are_those_of_one_node():
    """Slurm may give a job with two GPUs one of each of two nodes."""
    assert "nodes=1" in read_yaml(ROOT / "profiles/slurm/config.yaml")["default-resources"]


def test_commands_of_the_page_are_run():
    """What `make cluster` runs has all words of a command, except addresses and values."""
    files = [*(ROOT / "tests/cluster").glob("*.py"), ROOT / "Makefile"]
    source = "\n".join(path.read_text() for path in files if path != Path(__file__))
    page = (ROOT / "docs/cluster.md").read_text()
    blocks = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    commands = [line for block in blocks for line in block.splitlines()]
    assert len(commands) > 12
    for command in commands:
        words = [word for word in shlex.split(command) if not re.search(r"[/=]|[A-Z]{3}", word)]
        assert [word for word in words[1:] if word not in source] == [], command
