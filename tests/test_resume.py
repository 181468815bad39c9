"""Killed training resumes, and ends with the same bytes, under both engines."""

import json
import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from ruamel.yaml import YAML

from tests.project_copy import Project
from wxb.core.params import load

pytestmark = pytest.mark.slow
DVC = ("dvc", "repro")
SNAKEMAKE = ("snakemake", "--cores", "2")
TIMEOUT = 600  # seconds


@dataclass(frozen=True)
class Kill:
    """What is killed under which engine, and when: as a share of the time of training."""

    kind: str  # the processes that are killed: stage, group or engine
    engine: tuple[str, ...]
    moment: float


@dataclass(frozen=True)
class Run:
    """A training that is killed some times before an engine finishes it."""

    experiment: str
    kills: tuple[Kill, ...]
    last: tuple[str, ...]

    def __str__(self):
        kills = (f"{kill.kind} under {kill.engine[0]}" for kill in self.kills)
        return f"{self.experiment}: {', '.join(kills)}, then {self.last[0]}"


RUNS = [
    Run("ner-encoder", (Kill("stage", DVC, 0.25),), SNAKEMAKE),
    Run("ner-encoder", (Kill("group", SNAKEMAKE, 0.65), Kill("engine", DVC, 0.1)), DVC),
]


def lengthen(params):
    params["portable"] = False  # it doubles the time
    for experiment in params["experiments"].values():
        # Long enough to be killed at any point; the best checkpoint is not the last one.
        if "epochs" in experiment["training"]:
            experiment["training"].update(epochs=6, early_stopping_patience=3)


class Trained(Project):
    """The project, with the outputs of its experiments without kills."""

    def __init__(self, folder):
        super().__init__(folder)
        self.groups = []
        self.expected = {}
        self.reset()
        self.edit(lengthen)
        self.params = load(folder / "params.yaml")

    def train(self, experiment):
        """Train once without kills; returns the outputs by path, and the seconds. Cached."""
        if experiment not in self.expected:
            backbone = self.params.experiments[experiment].backbone
            self.run("dvc", "repro", f"align@{experiment}", f"pretrain@{backbone}")
            assert self.start(DVC, experiment).wait(TIMEOUT) == 0, self.console()
            cost = json.loads((self.folder / f"reports/cost/train/{experiment}.json").read_text())
            self.expected[experiment] = self.outputs(experiment), cost["seconds"]
        return self.expected[experiment]

    def outputs(self, experiment):
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for top in self.outs(experiment)
            for path in sorted(top.rglob("*"))
            if path.is_file()
        }

    def outs(self, experiment):
        return [
            self.folder / "models" / experiment,
            self.folder
            / "reports/training"
            / self.params.experiments[experiment].study
            / experiment,
        ]

    def remove_training(self, experiment):
        """Remove the outputs of training, and their entries in dvc.lock and DVC's run cache."""
        for path in (*self.outs(experiment), self.folder / ".dvc/cache/runs"):
            shutil.rmtree(path, ignore_errors=True)
        lock = self.lock()
        del lock["stages"][f"train@{experiment}"]
        YAML().dump(lock, self.folder / "dvc.lock")

    def lock(self):
        return YAML().load(self.folder / "dvc.lock")

    def is_done(self, experiment):
        """Whether DVC has saved the training."""
        return f"train@{experiment}" in self.lock()["stages"]

    def start(self, engine, experiment):
        """Start an engine that trains, as the leader of its own process group."""
        self.log(experiment).unlink(missing_ok=True)
        # A new file: a stage that outlived the previous engine still writes to the old one.
        self.screen = self.folder / f"console-{len(self.groups)}"
        with self.screen.open("w") as console:
            process = psutil.Popen(
                [*engine, f"train@{experiment}"],
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

    def log(self, experiment):
        return self.folder / f"logs/train@{experiment}.log"

    def checkpoints(self, experiment):
        """The complete checkpoints, oldest first."""
        names = []
        for path in self.folder.glob(f".wxb/checkpoints/train@{experiment}-*/checkpoint-*"):
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


def repair_run_cache(project):
    """Remove the folder that DVC leaves if it is killed while it saves a run."""
    runs = project.folder / ".dvc/cache/runs"
    if runs.exists():
        subprocess.run(["find", runs, "-type", "d", "-empty", "-delete"], check=True)


def _command(process):
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def start(project, engine, name):
    """Start an engine."""
    if engine == DVC:  # runs of Snakemake do it themselves
        repair_run_cache(project)
    return project.start(engine, name)


def start_and_kill(project, kill, name, seconds):
    """Let an engine train, and kill it; returns the last checkpoint, None if that is unknown."""
    process = start(project, kill.engine, name)
    assert wait_until(project.log(name).exists, process), project.console()
    model = project.outs(name)[0]
    before = model.exists() and model.stat().st_ino  # an earlier stage may have ended
    time.sleep(kill.moment * seconds)
    kill_processes(kill.kind, process)
    published = model.exists() and model.stat().st_ino != before
    checkpoints = project.checkpoints(name)
    print(f"{kill}: {checkpoints=}, {published=}")
    # A stage that publishes its model removes checkpoints next.
    return None if published else checkpoints[-1:]


@pytest.mark.parametrize("run", RUNS, ids=str)
def test_killed_training_resumes_to_the_same_bytes(project, run):
    name = run.experiment
    outputs, seconds = project.train(name)
    project.remove_training(name)
    for kill in run.kills:
        last = start_and_kill(project, kill, name, seconds)
        if project.is_done(name):  # the kill came too late
            break
    is_rerun = not project.is_done(name)
    process = start(project, run.last, name)
    assert process.wait(TIMEOUT) == 0, project.console()
    assert (f"Running stage 'train@{name}'" in project.console()) == is_rerun
    if is_rerun:
        lines = project.log(name).read_text().splitlines()
        resumed = [Path(line).name for line in lines if line.startswith("resuming from")]
        print(f"{resumed=}")
        assert last is None or resumed == last
        assert not list((project.folder / ".wxb/checkpoints").iterdir())
    assert project.outputs(name) == outputs
    assert not list(project.folder.glob("[!.]*/**/.*.partial"))
