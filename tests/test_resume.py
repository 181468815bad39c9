"""Training that is killed at any moment goes on, and ends with the same bytes, under both engines.

`pytest tests/test_resume.py --kills 30 -n 0` takes longer and spreads the kills over all
experiments of params.yaml.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import psutil
import pytest
from ruamel.yaml import YAML

from tests.copied import ROOT, Project
from wxb.core.params import load

pytestmark = pytest.mark.slow
SEED = 1  # the default number of kills meets both engines
DVC = ("dvc", "repro")
SNAKEMAKE = ("snakemake", "--cores", "2")
KINDS = ("stage", "group", "engine")  # of kills: what is killed
PATIENCE = 600  # seconds; who waits longer hangs


@dataclass(frozen=True)
class Kill:
    """What is killed under which engine, and when: as a share of the usual time of training."""

    kind: str
    engine: tuple[str, ...]
    moment: float


@dataclass(frozen=True)
class Run:
    """A training that is killed some times in a row before an engine may finish it."""

    experiment: str
    kills: tuple[Kill, ...]
    last: tuple[str, ...]

    def __str__(self):
        kills = (f"{kill.kind} under {kill.engine[0]}" for kill in self.kills)
        return f"{self.experiment}: {', '.join(kills)}, then {self.last[0]}"


def plan(kills, experiments):
    rng, kinds, runs = random.Random(SEED), cycle(KINDS), []
    while kills:
        count = min(kills, rng.choice([1, 1, 2, 3]))
        kills -= count
        runs.append(
            Run(
                experiments[len(runs) // 2 % len(experiments)],
                tuple(Kill(next(kinds), _either(rng), rng.random()) for _ in range(count)),
                _either(rng),
            )
        )
    return runs


def _either(rng):
    return rng.choice([DVC, SNAKEMAKE])


def pytest_generate_tests(metafunc):
    if "run" in metafunc.fixturenames:
        experiments = list(load(ROOT / "params.yaml").experiments)
        metafunc.parametrize("run", plan(metafunc.config.getoption("kills"), experiments), ids=str)


def lengthen(params):
    params["portable"] = False  # which takes twice the time
    for experiment in params["experiments"].values():
        # Long enough to be hit at any point, and with a best checkpoint that is not the last.
        experiment["training"].update(epochs=6, early_stopping_patience=3)


class Trained(Project):
    """The project, and what its experiments come to undisturbed."""

    def __init__(self, folder):
        super().__init__(folder)
        self.groups = []
        self.usual = {}
        self.reset()
        self.edit(lengthen)
        self.params = load(folder / "params.yaml")

    def undisturbed(self, experiment):
        """The outputs of training, by path, and its usual seconds; what it needs is made first."""
        if experiment not in self.usual:
            backbone = self.params.experiments[experiment].backbone
            self.run("dvc", "repro", f"align@{experiment}", f"pretrain@{backbone}")
            assert self.start(DVC, experiment).wait(PATIENCE) == 0, self.console()
            cost = json.loads((self.folder / f"reports/cost/train/{experiment}.json").read_text())
            self.usual[experiment] = self.outputs(experiment), cost["seconds"]
        return self.usual[experiment]

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

    def forget(self, experiment):
        """Undo the training of an experiment, for DVC too; its run cache would restore it."""
        for path in (*self.outs(experiment), self.folder / ".dvc/cache/runs"):
            shutil.rmtree(path, ignore_errors=True)
        lock = self.lock()
        del lock["stages"][f"train@{experiment}"]
        YAML().dump(lock, self.folder / "dvc.lock")

    def lock(self):
        return YAML().load(self.folder / "dvc.lock")

    def is_done(self, experiment):
        """Whether DVC has recorded that training ended."""
        return f"train@{experiment}" in self.lock()["stages"]

    def start(self, engine, experiment):
        """An engine that trains, as the leader of a process group of its own."""
        self.log(experiment).unlink(missing_ok=True)
        # A file of its own: a stage that outlived the engine before still writes to that one's.
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
        """What the engine that started last has printed."""
        return self.screen.read_text()

    def log(self, experiment):
        return self.folder / f"logs/train@{experiment}.log"

    def checkpoints(self, experiment):
        """The checkpoints that were written to their end, oldest first."""
        found = []
        for path in self.folder.glob(f".wxb/checkpoints/train@{experiment}-*/checkpoint-*"):
            try:
                json.loads((path / "trainer_state.json").read_text())
            except (FileNotFoundError, json.JSONDecodeError):
                continue
            found.append(path.name)
        return sorted(found, key=lambda name: int(name.split("-")[1]))

    def end(self):
        for group in self.groups:
            try:
                os.killpg(group, signal.SIGKILL)
            except ProcessLookupError:
                continue


@pytest.fixture(scope="module")
def project(built, tmp_path_factory):
    project = Trained(built.copy(tmp_path_factory.mktemp("resume") / "project").folder)
    yield project
    project.end()


def wait_until(true, process):
    """Whether it came true before the process ended."""
    deadline = time.monotonic() + PATIENCE
    while not true():
        if process.poll() is not None:
            return true()
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)
    return True


def kill(kind, process):
    """Kill a part of an engine's processes; gives the stage if it lives on, suspended."""
    if process.poll() is not None:
        return None
    members = [process, *process.children(recursive=True)]
    stages = [member for member in members if "stages.train" in _command(member)]
    if kind == "group":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        for member in members:
            if (member in stages) == (kind == "stage") and member.is_running():
                member.kill()
    process.wait(PATIENCE)
    orphan = None
    if kind == "engine":
        orphan = next(filter(psutil.Process.is_running, stages), None)
        if orphan is not None:
            orphan.suspend()
    # To DVC a process is at work, and its locks hold, until the system has forgotten its number.
    psutil.wait_procs([member for member in members if member != orphan], PATIENCE)
    return orphan


def mend(project):
    """Remove what a DVC that was killed while it took down a run left; `wxb doctor` tells so."""
    runs = project.folder / ".dvc/cache/runs"
    if runs.exists():
        subprocess.run(["find", runs, "-type", "d", "-empty", "-delete"], check=True)


def _command(process):
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def start(project, engine, name, orphan):
    """Start an engine; if the stage of the one before lives on, this one's stage must wait."""
    if engine == DVC:  # Snakemake mends it by itself
        mend(project)
    process = project.start(engine, name)
    if orphan is not None:
        waiting = f"train@{name}: waiting for process {orphan.pid}, which runs the same stage"
        told = wait_until(lambda: waiting in project.console(), process)
        orphan.resume()
        assert told, project.console()
    return process


def strike(project, blow, name, seconds, orphan):
    """Let an engine train, and kill; gives the stage if it lives on, and what to go on from."""
    process = start(project, blow.engine, name, orphan)
    assert wait_until(project.log(name).exists, process), project.console()
    model = project.outs(name)[0]
    before = model.exists() and model.stat().st_ino  # the stage of the engine before may have ended
    time.sleep(blow.moment * seconds)
    orphan = kill(blow.kind, process)
    published = model.exists() and model.stat().st_ino != before
    if orphan is not None and published:  # it may have left its lock already
        orphan.resume()
        orphan.wait(PATIENCE)
        orphan = None
    checkpoints = project.checkpoints(name)
    print(f"{blow}: {checkpoints=}, {published=}, {orphan=}")
    # Whoever publishes removes checkpoints next, and a stage that lives on will.
    return orphan, None if published or orphan else checkpoints[-1:]


def test_killed_training_goes_on_to_the_same_bytes(project, run):
    name = run.experiment
    outputs, seconds = project.undisturbed(name)
    project.forget(name)
    orphan = None
    for blow in run.kills:
        orphan, last = strike(project, blow, name, seconds, orphan)
        if project.is_done(name):  # it came too late
            break
    again = not project.is_done(name)
    process = start(project, run.last, name, orphan)
    assert process.wait(PATIENCE) == 0, project.console()
    assert (f"Running stage 'train@{name}'" in project.console()) == again
    if again:
        lines = project.log(name).read_text().splitlines()
        resumed = [Path(line).name for line in lines if line.startswith("going on from")]
        print(f"{resumed=}")
        assert last is None or resumed == last
        assert not list((project.folder / ".wxb/checkpoints").iterdir())
    assert project.outputs(name) == outputs
    assert not list(project.folder.glob("[!.]*/**/.*.partial"))
