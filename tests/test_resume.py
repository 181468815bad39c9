"""Killed training resumes, and ends with the same bytes, under both engines."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest
from ruamel.yaml import YAML

from tests.project_copy import Project

pytestmark = pytest.mark.slow
NAME, STAGE = "ner-encoder", "train@ner-encoder"
DVC = ("dvc", "repro")
SNAKEMAKE = ("snakemake", "--cores", "2")
TIMEOUT = 600  # seconds


class Kill(NamedTuple):
    """What is killed under which engine, and when: as a share of the time of training."""

    kind: str  # the processes that are killed: stage, group or engine
    engine: tuple[str, ...]
    moment: float


# Kills of a training, and the engine that finishes it.
RUNS = [
    ([Kill("stage", DVC, 0.25)], SNAKEMAKE),
    ([Kill("group", SNAKEMAKE, 0.65), Kill("engine", DVC, 0.1)], DVC),
]


def lengthen(params):
    params["portable"] = False  # it doubles the time
    for experiment in params["experiments"].values():
        # Long enough to be killed at any point; the best checkpoint is not the last one.
        if "epochs" in experiment["training"]:
            experiment["training"].update(epochs=6, early_stopping_patience=3)


class Trained(Project):
    """The project, with the outputs of an experiment without kills."""

    def __init__(self, folder):
        super().__init__(folder)
        self.groups = []
        self.reset()
        self.edit(lengthen)
        self.outs = [folder / "models" / NAME, folder / "reports/training/ner" / NAME]
        self.log = folder / f"logs/{STAGE}.log"
        self.run("dvc", "repro", f"align@{NAME}", "pretrain@encoder")
        assert self.start(DVC).wait(TIMEOUT) == 0, self.console()
        cost = json.loads((folder / f"reports/cost/train/{NAME}.json").read_text())
        self.seconds, self.expected = cost["seconds"], self.outputs()

    def outputs(self):
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for top in self.outs
            for path in sorted(top.rglob("*"))
            if path.is_file()
        }

    def remove_training(self):
        """Remove the outputs of training, and their entries in dvc.lock and DVC's run cache."""
        for path in (*self.outs, self.folder / ".dvc/cache/runs"):
            shutil.rmtree(path, ignore_errors=True)
        lock = self.lock()
        del lock["stages"][STAGE]
        YAML().dump(lock, self.folder / "dvc.lock")

    def lock(self):
        return YAML().load(self.folder / "dvc.lock")

    def is_done(self):
        """Whether DVC has saved the training."""
        return STAGE in self.lock()["stages"]

    def start(self, engine):
        """Start an engine that trains, as the leader of its own process group."""
        self.log.unlink(missing_ok=True)
        runs = self.folder / ".dvc/cache/runs"
        if engine == DVC and runs.exists():  # a killed DVC may leave an empty folder there
            subprocess.run(["find", runs, "-type", "d", "-empty", "-delete"], check=True)
        # A new file: a stage that outlived the previous engine still writes to the old one.
        self.screen = self.folder / f"console-{len(self.groups)}"
        with self.screen.open("w") as console:
            process = psutil.Popen(
                [*engine, STAGE],
                cwd=self.folder,
                env=self.environment,
                stdout=console,
                stderr=console,
                start_new_session=True,
            )
        self.groups.append(process.pid)
        return process

    def console(self):
        """The output of the engine that started last."""
        return self.screen.read_text()

    def checkpoints(self):
        """The complete checkpoints, oldest first."""
        names = []
        for path in self.folder.glob(f".wxb/checkpoints/{STAGE}-*/checkpoint-*"):
            try:
                json.loads((path / "trainer_state.json").read_text())
            except (FileNotFoundError, json.JSONDecodeError):
                continue
            names.append(path.name)
        return sorted(names, key=lambda name: int(name.split("-")[1]))

    def end(self):
        for group in self.groups:
            try:
                os.killpg(group, signal.SIGKILL)
            except ProcessLookupError:
                continue


@pytest.fixture(scope="module")
def project(built_project, tmp_path_factory):
    project = Trained(built_project.copy(tmp_path_factory.mktemp("resume") / "project").folder)
    yield project
    project.end()


def wait_until(condition, process):
    """Wait for a condition; returns whether it came true before the process ended."""
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        if process.poll() is not None:
            return condition()
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)
    return True


def kill_processes(kind, process):
    """Kill a part of an engine's processes, and wait until all have ended.

    A stage ends with its engine.
    """
    if process.poll() is not None:
        return
    members = [process, *process.children(recursive=True)]
    stages = [member for member in members if "stages.train" in _command(member)]
    if kind == "group":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        for member in members:
            if (member in stages) == (kind == "stage") and member.is_running():
                member.kill()
    process.wait(TIMEOUT)
    # DVC respects the locks of a process until its PID is free.
    assert not psutil.wait_procs(members, TIMEOUT)[1]


def _command(process):
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def start_and_kill(project, kill):
    """Let an engine train, and kill it; returns the last checkpoint, None if that is unknown."""
    process = project.start(kill.engine)
    assert wait_until(project.log.exists, process), project.console()
    model = project.outs[0]
    before = model.exists() and model.stat().st_ino  # an earlier stage may have ended
    time.sleep(kill.moment * project.seconds)
    kill_processes(kill.kind, process)
    published = model.exists() and model.stat().st_ino != before
    checkpoints = project.checkpoints()
    print(f"{kill}: {checkpoints=}, {published=}")
    # A stage that publishes its model removes checkpoints next.
    return None if published else checkpoints[-1:]


@pytest.mark.parametrize(("kills", "engine"), RUNS)
def test_killed_training_resumes_to_the_same_bytes(project, kills, engine):
    project.remove_training()
    for kill in kills:
        last = start_and_kill(project, kill)
        if project.is_done():  # the kill came too late
            break
    is_rerun = not project.is_done()
    process = project.start(engine)
    assert process.wait(TIMEOUT) == 0, project.console()
    assert (f"Running stage '{STAGE}'" in project.console()) == is_rerun
    if is_rerun:
        lines = project.log.read_text().splitlines()
        resumed = [Path(line).name for line in lines if line.startswith("resuming from")]
        print(f"{resumed=}")
        assert last is None or resumed == last
        assert not list((project.folder / ".wxb/checkpoints").iterdir())
    assert project.outputs() == project.expected
    assert not list(project.folder.glob("[!.]*/**/.*.partial"))
