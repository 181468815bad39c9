"""Time DVC and Snakemake on stages that do nothing, and a stage of this project in DVC.

Stages are in rows of ten: each depends on one of the row before. All are up to date, so the times
are those of reading the DAG and checking files.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from dvc.repo import Repo
from timing import Comparison, compare, seconds

from wxb.core.errors import WxbError

ROOT = Path(__file__).parents[2]
ROW = 10  # stages that do not depend on each other
EMPTY = "{md5: d41d8cd98f00b204e9800998ecf8427e, hash: md5, size: 0, path: %s}"  # in dvc.lock
COMMANDS = {
    "dvc status": ["dvc", "status", "--quiet"],
    "dvc repro --dry": ["dvc", "repro", "--dry", "--quiet"],
    "snakemake --dry-run": ["snakemake", "--dry-run", "--quiet", "all", "--cores", "1"],
}
STAGE, NO_OP = 1 / 1.2, 1 / 1.3  # goals: how many times as fast as DVC alone


class Timed(NamedTuple):
    """Seconds of a command with a number of stages."""

    command: str
    stages: int
    seconds: float


def scaling(sizes: Sequence[int]) -> Iterator[Timed]:
    """Time COMMANDS once each in projects of several sizes."""
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            write_project(Path(folder), size)
            for name, command in COMMANDS.items():
                yield Timed(name, size, seconds(lambda c=command: run(c, Path(folder))))


def write_project(folder: Path, size: int) -> None:
    """Write dvc.yaml, dvc.lock and a Snakefile with `size` stages, and their empty outputs."""
    (folder / ".dvc").mkdir()
    config = "    no_scm = true\n"
    (folder / ".dvc/config").write_text((ROOT / ".dvc/config").read_text() + config)
    (folder / "out").mkdir()
    (folder / "start").touch()
    pipeline, lock = ["stages:"], ["schema: '2.0'", "stages:"]
    rules = [f"rule all:\n    input: expand('out/{{i}}', i=range({size}))"]
    for index in range(size):
        source = "start" if index < ROW else f"out/{index - ROW}"
        target = f"out/{index}"
        (folder / target).touch()
        start = f"  s{index}: {{cmd: touch {target}, deps"
        pipeline.append(f"{start}: [{source}], outs: [{target}: {{cache: false}}]}}")
        lock.append(f"{start}: [{EMPTY % source}], outs: [{EMPTY % target}]}}")
        rules.append(
            f"rule s{index}:\n    input: '{source}'\n    output: '{target}'\n"
            "    shell: 'touch {output}'"
        )
    for name, lines in (("dvc.yaml", pipeline), ("dvc.lock", lock), ("Snakefile", rules)):
        (folder / name).write_text("\n".join(lines) + "\n")


def comparisons(turns: int) -> Iterator[Comparison]:
    """A stage of this project compared with an empty one, and a no-op run with `dvc status`."""
    yield no_op(turns)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_project(folder, 1)
        for source in ("params.yaml", "params", "stages", "wxb", "demos"):
            (folder / source).symlink_to(ROOT / source)
        for stage, command in {"ours": "python -m stages.check", "empty": "true"}.items():
            with (folder / "dvc.yaml").open("a") as file:
                file.write(f"  {stage}: {{cmd: '{command}'}}\n")
        ours, empty = (
            lambda s=stage: run(["dvc", "repro", "--quiet", "--force", "--single-item", s], folder)
            for stage in ("ours", "empty")
        )
        yield compare("a stage, check", ours, "an empty stage", empty, turns=turns, goal=STAGE)


def no_op(turns: int) -> Comparison:
    """`dvc repro` without work compared with `dvc status`, in a clone of this project."""
    with tempfile.TemporaryDirectory() as name:
        run(["git", "clone", "--quiet", str(ROOT), name], ROOT)
        commit_empty_outputs(Path(name))
        repro, status = (
            lambda c=command: run(c, Path(name))
            for command in (["dvc", "repro", "--quiet"], COMMANDS["dvc status"])
        )
        return compare("dvc repro, no-op", repro, "dvc status", status, turns=turns, goal=NO_OP)


def commit_empty_outputs(folder: Path) -> None:
    """Make all stages of a project up to date: their missing outputs become empty files."""
    with Repo(str(folder)) as repo:
        paths = [Path(item.fs_path) for item in (*repo.index.deps, *repo.index.outs)]
    for path in sorted(paths, reverse=True):  # folders after their files
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    run(["dvc", "commit", "--force", "--quiet"], folder)


def run(command: Sequence[str], folder: Path) -> None:
    """Run a command of this Python's environment in a folder; its output is shown if it fails."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise WxbError(f"{' '.join(command)} failed: {(done.stdout + done.stderr)[-500:]}")
