"""The DAG of dvc.yaml as DVC sees it at this moment, for the Snakefile to run in parallel.

DVC alone decides what is stale. Snakemake plans with files, so each of its runs gets a fresh folder
of stamps, an empty file for every stage that has nothing to do, and forgets it at the end: nothing
is kept between runs that could contradict DVC.
"""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dvc.exceptions import DvcException
from dvc.lock import LockError
from dvc.repo import Repo, lock_repo
from dvc.repo.reproduce import collect_stages, get_active_graph, plan_repro

# The stages that draw a page, and the table beside it.
TABLES = {"report": "reports/studies/{name}.csv", "lesson": "reports/metrics/lessons/{name}.json"}


class PlanError(Exception):
    """DVC cannot say what is stale; the message says what was found and what to do."""


@dataclass(frozen=True)
class Stage:
    """One stage of dvc.yaml: its name in DVC (`train@ner-encoder`) and the stages it waits for.

    It is `due` if DVC calls it or anything upstream of it stale. Whether a due stage really runs
    is DVC's decision when its turn comes: inputs that kept their bytes are no reason.
    """

    name: str
    upstream: tuple[str, ...]
    due: bool

    @property
    def log(self) -> str:
        """The file, relative to the project, that the stage itself keeps as its log."""
        return f"logs/{self.name}.log"


def plan() -> list[Stage]:
    """All stages that `dvc repro` in the working folder visits, in its order: upstream first.

    Raises PlanError if another run is at work in the project or DVC cannot read it.
    """
    try:
        with Repo() as repo, lock_repo(repo):
            for folder in empty_runs(Path(repo.stage_cache.cache_dir)):
                folder.rmdir()
            stale = repo.status()
            graph = get_active_graph(repo.index.graph)
            steps = plan_repro(graph, collect_stages(repo, ["dvc.yaml"]))
    except LockError as error:
        who = ", ".join(sorted(set(re.findall(r"PID \d+", str(error))))) or "it keeps DVC's lock"
        raise PlanError(
            f"another run of dvc or snakemake is at work in this project ({who}); "
            "wait until it has ended, or stop it, then try again"
        ) from error
    except DvcException as error:
        raise PlanError(f"DVC cannot read this project: {error}") from error

    stages: dict[str, Stage] = {}
    for step in steps:
        upstream = tuple(sorted(before.addressing for before in graph.successors(step)))
        due = step.addressing in stale or any(stages[name].due for name in upstream)
        stages[step.addressing] = Stage(step.addressing, upstream, due)
    return list(stages.values())


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
            files = [f"reports/{name}.html", table.format(name=name)]
            found[name] = Target(stage.name, [] if stage.due else files)
    return found


def lay_stamps(stages: Iterable[Stage], folder: Path) -> None:
    """Put a stamp into `folder` for each stage that is not due, older the further upstream."""
    for place, stage in enumerate(stages):
        if not stage.due:
            stamp = folder / stage.name
            stamp.parent.mkdir(parents=True, exist_ok=True)
            stamp.touch()
            os.utime(stamp, (place, place))
