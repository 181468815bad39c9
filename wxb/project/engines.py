"""What Snakemake needs to run the DAG of dvc.yaml in parallel.

DVC alone decides what is stale. Snakemake plans with files, so each of its runs gets a new folder
of stamps: an empty file for every stage that is up to date. The folder goes when the run ends, so
nothing is kept between runs that could contradict DVC.
"""

import os
import shlex
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import psutil  # type: ignore[import-untyped]

from wxb.project import dvc, repair, status
from wxb.project.root import require_no_braces_or_conflicts
from wxb.project.status import PlanError, unreadable_error
from wxb.runtime import locks


class ActiveRunError(PlanError):
    """A run of DVC or Snakemake is active in the project."""

    def __init__(self, consequence: str, evidence: str) -> None:
        super().__init__(
            f"{consequence}: a run of dvc or snakemake is active in this project ({evidence});"
            " wait until it ends, or stop it, then try again"
        )


# Flags with which Snakemake prints and runs nothing, by their names in its parsed arguments.
READ_ONLY_FLAGS = (
    *("dryrun", "dag", "rulegraph", "filegraph", "d3dag", "summary", "detailed_summary"),
    *("list_rules", "list_target_rules", "list_changes", "list_input_changes"),
    *("list_params_changes", "list_untracked", "lint", "report", "unlock", "archive"),
    *("cleanup_metadata", "cleanup_shadow", "print_compilation", "containerize"),
)
# Flags without an effect here, as they act on stamps; and the command for their purpose.
UNSUPPORTED = {
    "forcerun": "dvc repro --force --single-item STAGE",
    "force": "dvc repro --force --single-item STAGE",
    "forceall": "dvc repro --force",
    "touch": "dvc commit --force STAGE",
    "delete_all_output": "make clean",
    "delete_temp_output": "wxb clean",
    "batch": "snakemake STAGE",
    "config": "dvc exp run --set-param KEY=VALUE, or edit params.yaml",
}

# The variable with the folder of stamps and plan; jobs of a run, on any machine, read it.
RUN = "WXB_RUN"
SNAKEMAKE = Path(".snakemake")

# The command that makes DVC run a stage; append the stage's name.
REPRO = [sys.executable, "-m", dvc.__name__, "--wait-for-lock", "repro", "--single-item"]


class Stage(NamedTuple):
    """One stage of dvc.yaml: its name in DVC (`train@NAME`) and the stages that must run before it.

    `is_due`: DVC calls the stage or one upstream of it stale. A due stage whose inputs kept their
    bytes will not run: DVC decides that when the stage's turn comes. `absent`: as in status.Step.
    """

    name: str
    upstream: tuple[str, ...]
    is_due: bool
    absent: tuple[str, ...] = ()


def plan() -> list[Stage]:
    """All stages that `dvc repro` in the working folder visits, in its order: upstream first.

    Leaves out `check`, which runs before planning (see `repair_and_run_check`). Changes nothing,
    and does not disturb a run. Raises WxbError as `status.steps` does.
    """
    stages: dict[str, Stage] = {}
    for step in status.steps():
        if step.name != status.CHECK:
            upstream = tuple(name for name in step.upstream if name != status.CHECK)
            is_due = step.is_due or any(stages[name].is_due for name in upstream)
            stages[step.name] = Stage(step.name, upstream, is_due, step.absent)
    return list(stages.values())


def use_own_python() -> None:
    """Let stages use the `python` that runs Snakemake, even if its environment is not activated."""
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])


def is_read_only(arguments: Namespace) -> bool:
    """Whether Snakemake, with these arguments, only prints: then no file is changed."""
    return any(getattr(arguments, name, None) for name in READ_ONLY_FLAGS)


def require_supported(arguments: Namespace, config: Iterable[str]) -> None:
    """Raise PlanError for an argument in UNSUPPORTED, or any key of `config` except `handover`."""
    keys = {*config} - {"handover"}
    for name, command in UNSUPPORTED.items():
        if keys if name == "config" else getattr(arguments, name, None):
            flag = f"--{name.replace('_', '-')}"
            raise PlanError(f"no run started: {flag} has no effect here; use: {command}")


def repair_and_run_check() -> None:
    """Check that a run may start, repair what a killed one left, and run `check` if it is due.

    `check` runs first because all other stages depend on it: Snakemake would plan them all. Prints
    each repair to stderr. Raises WxbError as `repaired` does, and PlanError if `check` fails.
    """
    from dvc.stage.exceptions import StageNotFound

    is_due = False
    # Not every dvc.yaml has the stage.
    with repaired(lambda line: print(line, file=sys.stderr)) as repo, suppress(StageNotFound):
        is_due = repo.stage.load_one("dvc.yaml", status.CHECK).changed()
    if is_due and subprocess.run([*REPRO, status.CHECK], check=False).returncode:
        raise PlanError(f"the stage {status.CHECK} failed; its error is above")


@contextmanager
def repaired(report: Callable[[str], object], consequence: str = "no run started") -> Iterator[Any]:
    """Repair what a killed run left, and yield DVC's view of the project, as in `exclude_runs`.

    Calls `report` with a sentence for each repair. Raises PlanError if there is no DVC project,
    and WxbError for a merge conflict, braces in the path, linked folders and broken links.
    """
    require_no_braces_or_conflicts()
    for sentence in () if any(_snakemake_pids()) else repair.release_rwlock():
        report(sentence)
    with exclude_runs(consequence) as repo:
        if repo is None:
            raise unreadable_error(f"{Path.cwd()} has no folder .dvc")
        for sentence in chain(repair.clean_run_cache(repo), repair.restore_lockfile()):
            report(sentence)
        status.require_valid_links(repo.index.stages)
        for sentence in repair.refill_cache(repo):
            report(sentence)
        yield repo


@contextmanager
def exclude_runs(consequence: str) -> Iterator[Any]:
    """Hold DVC's lock so that no run starts meanwhile, and yield DVC's view of the project.

    Yields None if the working folder has no DVC project. A `dvc` that starts meanwhile retries for
    3 seconds. Calls `patch_writes` and `remove_plain_locks`. Raises ActiveRunError, which begins
    with `consequence`, if DVC, Snakemake or a stage runs, and PlanError for other errors of DVC.
    """
    stages = (process.pid for process in locks.running_stages().values())
    if processes := {*status.paths_in_use().values(), *_snakemake_pids(), *stages}:
        raise ActiveRunError(consequence, ", ".join(map(_pid_and_command, sorted(processes))))
    from dvc.exceptions import DvcException, NotDvcRepoError
    from dvc.lock import LockError
    from dvc.repo import Repo

    dvc.patch_writes()
    with ExitStack() as stack:
        repo = None
        try:
            with suppress(NotDvcRepoError):
                repo = stack.enter_context(Repo())
                repair.remove_plain_locks(repo)
                stack.enter_context(repo.lock)
            yield repo
        except LockError as error:
            raise ActiveRunError(consequence, f"it holds DVC's lock {repair.LOCK}") from error
        except DvcException as error:
            raise unreadable_error(error) from error


def run_folder(kind: str) -> "tempfile.TemporaryDirectory[str]":  # "run" or, if dry, "read"
    """Create a temporary folder in .snakemake; one of kind `run` makes `exclude_runs` fail."""
    SNAKEMAKE.mkdir(exist_ok=True)
    return tempfile.TemporaryDirectory(prefix=f"{kind}-{os.getpid()}-", dir=SNAKEMAKE.absolute())


def _snakemake_pids() -> Iterator[int]:
    """PIDs of live Snakemake runs here, also this one; between two jobs, DVC's rwlock has none."""
    for folder in SNAKEMAKE.glob("run-[0-9]*-*"):
        pid = int(folder.name.split("-")[1])
        with suppress(psutil.Error):
            if any("snakemake" in part for part in psutil.Process(pid).cmdline()):
                yield pid


def _pid_and_command(pid: int) -> str:
    """The PID and command of a process; only the PID if the command cannot be read."""
    try:
        return f"PID {pid}: {shlex.join(psutil.Process(pid).cmdline())}"
    except psutil.Error:
        return f"PID {pid}"


def page_stages(stages: Iterable[Stage]) -> dict[str, str]:
    """The names of the stages `report@NAME` and `lesson@NAME` of a plan, by NAME."""
    parts = [(stage.name, *stage.name.partition("@")) for stage in stages]
    return {name: stage for stage, verb, _, name in parts if verb in ("report", "lesson")}


def write_stamps(stages: Iterable[Stage], folder: Path) -> None:
    """Write an empty file to `folder` for each stage that is not due, older than those after it."""
    for timestamp, stage in enumerate(stages, start=1):  # Snakemake takes 0 for no date
        if not stage.is_due:
            stamp = folder / stage.name
            stamp.parent.mkdir(parents=True, exist_ok=True)
            stamp.touch()
            os.utime(stamp, (timestamp, timestamp))
