"""The DAG of dvc.yaml as DVC sees it at this moment, for the Snakefile to run in parallel.

DVC alone decides what is stale. Snakemake plans with files, so each of its runs gets a fresh folder
of stamps, an empty file for every stage that has nothing to do, and forgets it at the end: nothing
is kept between runs that could contradict DVC.
"""

import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import psutil  # type: ignore[import-untyped]

from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.files import read_json, write_json
from wxb.project import dag

if TYPE_CHECKING:
    from dvc.repo import Repo

# The stages that draw a page, and the table beside it.
TABLES: dict[str, Callable[[str], Path]] = {
    "report": partial(paths.study, suffix="csv"),
    "lesson": partial(paths.metrics, paths.LESSONS),
}


# The variable that tells jobs of a run, on whatever machine, where its stamps and its plan are.
RUN = "WXB_RUN"
SNAKEMAKE = Path(".snakemake")

# How a stage is handed over to DVC; its name follows.
REPRO = [sys.executable, "-m", "dvc", "--wait-for-lock", "repro", "--single-item"]


class PlanError(WxbError):
    """A run cannot begin, or be planned; the message says why and what to do."""


@dataclass(frozen=True)
class Stage:
    """One stage of dvc.yaml: its name in DVC (`train@NAME`) and the stages it waits for.

    It is `due` if DVC calls it or anything upstream of it stale. Whether a due stage really runs
    is DVC's decision when its turn comes: inputs that kept their bytes are no reason.
    """

    name: str
    upstream: tuple[str, ...]
    due: bool

    @property
    def log(self) -> str:
        """The file, relative to the project, that the stage itself keeps as its log."""
        return paths.log(self.name).as_posix()


def plan() -> list[Stage]:
    """All stages that `dvc repro` in the working folder visits, in its order: upstream first.

    Without `check`, which has its turn before planning (see `prepare`). Changes nothing, and
    disturbs no run. Raises PlanError if DVC cannot read the project.
    """
    try:
        steps = dag.steps()
    except dag.UnreadableError as error:
        raise PlanError(str(error)) from error
    stages: dict[str, Stage] = {}
    for step in steps:
        if step.name != dag.CHECK:
            upstream = tuple(name for name in step.upstream if name != dag.CHECK)
            due = step.due or any(stages[name].due for name in upstream)
            stages[step.name] = Stage(step.name, upstream, due)
    return list(stages.values())


def prepare() -> None:
    """Make sure that a run may begin, and mend what a killed one has left in DVC's run cache.

    Runs the stage `check` where it is due: as all others wait for it, Snakemake would plan them all
    with it. Raises PlanError if another run is at work in the project.
    """
    from dvc.exceptions import DvcException
    from dvc.stage.exceptions import StageNotFound

    due = False
    try:
        with no_run() as repo:
            if repo is None:
                raise PlanError(f"DVC cannot read this project: {Path.cwd()} has no folder .dvc")
            for folder in empty_runs(Path(repo.stage_cache.cache_dir)):
                folder.rmdir()
            with suppress(StageNotFound):  # not every dvc.yaml has one
                due = repo.stage.load_one("dvc.yaml", dag.CHECK).changed()
    except DvcException as error:
        raise PlanError(f"DVC cannot read this project: {error}") from error
    if due and subprocess.run([*REPRO, dag.CHECK], check=False).returncode:
        raise PlanError(f"the stage {dag.CHECK} failed; what it says stands above")


@contextmanager
def no_run(refused: str = "no run began") -> Iterator["Repo | None"]:
    """DVC's view of the project, in which no run begins meanwhile; None if DVC has no project here.

    A DVC that wants to begin tries for 3 seconds. Raises PlanError, which says what is `refused`,
    if a run of DVC or Snakemake is at work in the project.
    """
    if processes := {*dag.written().values(), *_snakemakes()}:
        raise PlanError(_at_work(refused, ", ".join(f"PID {pid}" for pid in sorted(processes))))
    from dvc.exceptions import NotDvcRepoError
    from dvc.lock import LockError
    from dvc.repo import Repo

    with ExitStack() as held:
        repo = None
        try:
            repo = held.enter_context(Repo())
            held.enter_context(repo.lock)
        except NotDvcRepoError:
            pass
        except LockError as error:
            raise PlanError(_at_work(refused, "it keeps DVC's lock")) from error
        yield repo


def folder_of_run(kind: str) -> "tempfile.TemporaryDirectory[str]":
    """A folder for what Snakemake notes, in this process, until it ends; `kind` is `run` or `look`.

    A run keeps others from beginning, a look does not.
    """
    SNAKEMAKE.mkdir(exist_ok=True)
    return tempfile.TemporaryDirectory(prefix=f"{kind}-{os.getpid()}-", dir=SNAKEMAKE.absolute())


def _snakemakes() -> Iterator[int]:
    """The processes of Snakemake that run the project: between two jobs DVC shows none of them."""
    for folder in SNAKEMAKE.glob("run-[0-9]*-*"):
        pid = int(folder.name.split("-")[1])
        with suppress(psutil.Error):
            if any("snakemake" in part for part in psutil.Process(pid).cmdline()):
                yield pid


def _at_work(refused: str, who: str) -> str:
    return (
        f"{refused}: a run of dvc or snakemake is at work in this project ({who});"
        " wait until it ends, or stop it, then try again"
    )


def empty_runs(cache: Path) -> list[Path]:
    """The folders of DVC's run cache without an entry. None is left by a run that ends by itself.

    A DVC that is killed after training, while it takes down the run, leaves one. DVC 3.67 asks it
    for its newest entry (dvc/stage/cache.py), and fails each time: "join() argument must be str".
    """
    return [folder for folder in sorted(cache.glob("*/*")) if not any(folder.iterdir())]


@dataclass(frozen=True)
class Target:
    """A study or lesson: the stage that ends it, and its page and tables, relative to the project.

    One that is due has no files: what lies there may tell of other inputs.
    """

    stage: str
    files: list[str]


def targets(stages: Iterable[Stage]) -> dict[str, Target]:
    """Each study and lesson by its name."""
    found = {}
    for stage in stages:
        verb, _, name = stage.name.partition("@")
        if table := TABLES.get(verb):
            files = [file.as_posix() for file in (paths.page(name), table(name))]
            found[name] = Target(stage.name, [] if stage.due else files)
    return found


def lay_stamps(stages: Iterable[Stage], folder: Path) -> None:
    """Put a stamp into `folder` for each stage that is not due, older the further upstream."""
    for place, stage in enumerate(stages, start=1):  # 0 is no date to Snakemake
        if not stage.due:
            stamp = folder / stage.name
            stamp.parent.mkdir(parents=True, exist_ok=True)
            stamp.touch()
            os.utime(stamp, (place, place))


def write_plan(stages: Iterable[Stage], path: Path) -> None:
    """Keep a plan for the jobs of the same run on other machines."""
    write_json(path, [asdict(stage) for stage in stages])


def read_plan(path: Path) -> list[Stage]:
    """What `write_plan` wrote."""
    found = [Stage(**stage) for stage in read_json(path)]
    return [replace(stage, upstream=tuple(stage.upstream)) for stage in found]


# How `--report` and `-n` begin to say it.
NO_HISTORY = ("Missing metadata", "missing provenance/metadata")


class Quiet(logging.Filter):
    """Keeps to itself what Snakemake need not say.

    That fresh stamps have no history, for each of them in `--report` and `-n`; and that jobs fail,
    with traces and commands, after the user has stopped them: each stage says so in its own words.
    """

    stopped = False

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a message is to be shown."""
        message = record.getMessage()
        self.stopped = self.stopped or message.startswith("Terminating processes on user request")
        if self.stopped and record.levelno >= logging.ERROR:
            return False
        return not any(told in message for told in NO_HISTORY)
