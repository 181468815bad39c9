"""Which stages of a run of the DAG are running, waiting, failed and done now."""

import json
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from wxb.core import paths, progress
from wxb.core.errors import WxbError
from wxb.core.params import Params
from wxb.project import engines, status
from wxb.runtime import locks
from wxb.runtime.engine import LOCKFILE

PAUSE = 10.0  # least seconds between two plans, each of which takes a core for one


class Running(NamedTuple):
    """A running stage and its latest progress."""

    stage: str
    caption: str = ""
    done: int = 0
    total: int | None = None
    unit: str = ""
    seconds: float = 0.0  # since the step named by `caption` began
    metrics: Mapping[str, Any] = {}
    epochs: int | None = None
    first: int = 0  # done before, by a run that was interrupted

    @property
    def seconds_left(self) -> float | None:
        """Seconds for the rest at the speed so far; None if unknown, as in the first second."""
        if not self.total or self.done <= self.first or self.seconds < 1:
            return None
        return self.seconds * max(0, self.total - self.done) / (self.done - self.first)


class State(NamedTuple):
    """The stages of a run by their state, each list in the order of the DAG."""

    running: Sequence[Running]
    waiting: Sequence[str]
    failed: Sequence[str]  # they ran and did not finish
    done: Sequence[str]
    elapsed: float = 0.0  # seconds since the watch began

    @property
    def is_complete(self) -> bool:
        """Whether no stage is running, waiting or failed."""
        return not (self.running or self.waiting or self.failed)


class Watch:
    """The stages of the project in the working folder that have been due or running so far.

    With the `name` of a study or lesson, only those that its page depends on. Watching takes no
    lock and changes no file, so it does not disturb a run.
    """

    def __init__(self, params: Params, name: str | None = None) -> None:
        self.params, self.name, self.begun = params, name, time.time()
        self.order: list[str] = []
        self.due: set[str] = set()
        self.seen: set[str] = set()  # stages that were due or ran
        self.started: set[str] = set()
        self.planned, self.version = -PAUSE, (-1, -1)

    def refresh(self, *, has_ended: bool = False) -> State:
        """Read the state now; query DVC if dvc.lock changed, every 10 s at most, or if `has_ended`.

        The first call raises WxbError if DVC cannot read the project.
        """
        version = status.file_version(LOCKFILE)
        is_rested = time.monotonic() - self.planned >= PAUSE
        if has_ended or (version != self.version and is_rested):
            self._replan(version)
        running = [*locks.running_stages()]
        self.started |= {*running}
        self.seen |= self.due | {*running}
        # Cost is the last output of a stage: one written since `begun` says that it has finished.
        times = {name: status.file_version(paths.cost(*name.split("@")))[0] for name in self.due}
        left = {name for name in self.due if times[name] < self.begun * 1e9} - {*running}
        return State(
            [_progress(name, self.params) for name in self._in_order(running)],
            self._in_order(left - self.started),
            self._in_order(left & self.started),
            self._in_order(self.seen - left - {*running}),
            time.time() - self.begun,
        )

    def _replan(self, version: tuple[int, int]) -> None:
        """Update the due stages, or keep the old ones if DVC fails; WxbError if there are none."""
        try:
            stages = engines.plan()
            if self.name is not None:
                wanted = {f"{verb}@{self.name}" for verb in ("report", "lesson")}
                for stage in reversed(stages):  # downstream first
                    if stage.name in wanted:
                        wanted |= {*stage.upstream}
                stages = [stage for stage in stages if stage.name in wanted]
            self.order = [stage.name for stage in stages]
            self.due = {stage.name for stage in stages if stage.is_due}
            self.version = version
        except WxbError:
            if not self.order:
                raise
        self.planned = time.monotonic()

    def _in_order(self, names: Collection[str]) -> list[str]:
        return [name for name in self.order if name in names]


def _progress(stage: str, params: Params) -> Running:
    """The progress that the process of a stage last wrote; only the stage if it wrote none."""
    try:
        pid = int((locks.LOCKS / f"{stage}.lock").read_text(encoding="utf-8"))
        note = json.loads((progress.PROGRESS_FOLDER / f"{stage}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return Running(stage)
    if note.pop("pid") != pid:  # an earlier run wrote it
        return Running(stage)
    verb, _, name = stage.partition("@")
    sections: dict[str, Mapping[str, Any]] = {"train": params.experiments, "lesson": params.lessons}
    training = getattr(sections.get(verb, {}).get(name), "training", None)
    return Running(stage, **note, epochs=getattr(training, "epochs", None))
