"""Which stages of a run of the DAG are running, waiting, stopped and done now."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import psutil  # type: ignore[import-untyped]

from wxb.core import progress
from wxb.core.params import Params
from wxb.project import dag, engines, provenance, staleness
from wxb.runtime import engine, locks, run_note

PAUSE = 3.0  # least seconds between two plans, each of which takes one
SHARE = 0.1  # of one core, at most, that planning may take from the run
SAVING = 20.0  # seconds in which DVC may still save the outputs of a stage that has exited


class Running(NamedTuple):
    """A running stage and its latest progress."""

    stage: str
    label: str = ""
    done: int = 0
    total: int | None = None
    unit: str = ""
    seconds: float = 0.0  # since the step named by `label` began
    metrics: Mapping[str, Any] = {}
    epochs: int | None = None

    @property
    def share(self) -> float | None:
        """How much of it is done, from 0 to 1; None if unknown."""
        return min(1.0, self.done / self.total) if self.total else None

    @property
    def seconds_left(self) -> float | None:
        """Seconds for the rest at the speed so far; None if unknown."""
        if not self.total or not self.done or self.seconds < 1:
            return None
        return self.seconds * max(0, self.total - self.done) / self.done

    @property
    def epoch(self) -> int | None:
        """The current epoch of a training, from 1; None for other steps."""
        if not self.epochs or not self.total or self.label.partition(" (seed ")[0] != self.stage:
            return None
        return min(self.epochs, 1 + self.done * self.epochs // self.total)


class State(NamedTuple):
    """The stages of a run by their state, each list in the order of the DAG."""

    running: Sequence[Running]
    waiting: Sequence[str]
    stopped: Sequence[str]  # they ran and did not finish
    done: Sequence[str]
    saving: Sequence[str] = ()  # they have exited; DVC may not have saved their outputs
    elapsed: float | None = None  # seconds since the run or the watch began
    seconds_left: float | None = None  # of all stages; None if unknown

    @property
    def total(self) -> int:
        """The number of stages."""
        return sum(map(len, self[:5]))

    @property
    def is_over(self) -> bool:
        """Whether no stage is left to run."""
        return not (self.running or self.waiting or self.stopped or self.saving)


class Watch:
    """The stages of the project in the working folder that have been due or running so far.

    With the `name` of a study or lesson, only those that its page depends on. Watching takes no
    lock and changes no file, so it does not disturb a run.
    """

    def __init__(self, params: Params, name: str | None = None) -> None:
        note = run_note.read()
        if note and name not in (None, note.name):
            note = None
        self.params, self.name = params, note.name if note else name
        self.begun = note.begun if note else time.time()
        self.expected = provenance.training_seconds()
        self.order: list[str] = []
        self.due: set[str] = set()
        self.seen = set(note.stages) if note else set()  # was due, or ran
        self.last_run: dict[str, float] = {}  # for due stages that ran: when last seen running
        self.planned, self.pause = -PAUSE, PAUSE
        self.version: tuple[Any, ...] = ()

    def refresh(self, *, has_ended: bool = False) -> State:
        """Read the state now. The first call raises PlanError if DVC cannot read the project.

        Once the run has ended, no stage is saved any more.
        """
        # DVC writes dvc.lock after it has saved outputs, and rwlock when it releases them.
        files = (*dag.file_version(dag.LOCKFILE), *dag.file_version(engine.RWLOCK))
        version = (*(before := staleness.running()), *files)
        if has_ended or (version != self.version and time.monotonic() - self.planned >= self.pause):
            self._plan(version)
        # A plan takes seconds. In this order, a stage that ends now is not shown with the next one.
        begun, running = {*_starting()}, staleness.running()
        version = (*running, *files)
        now = time.monotonic()
        self.seen = (self.seen | {*self.due, *before, *running}) & {*self.order}
        finished = {name for name in self.due if run_note.finished_since(name, self.begun)}
        self.last_run = {name: last for name, last in self.last_run.items() if name in self.due}
        self.last_run |= dict.fromkeys([*before, *running], now)
        # A stage that has exited may still be unsaved until the next plan.
        is_current = version == self.version
        exited = {name: last for name, last in self.last_run.items() if name not in running}
        recent = {name for name, last in exited.items() if not is_current or now - last < SAVING}
        saving = set() if has_ended else recent - finished
        left = {*self.due} - {*running} - saving - (set() if has_ended else finished)
        current = [_progress(name, self.params) for name in self._in_order(running)]
        waiting = self._in_order(left - {*self.last_run})
        starting = self._in_order(begun & {*waiting})
        waiting = [name for name in waiting if name not in starting]
        current += [Running(name, "starting") for name in starting]
        return State(
            current,
            waiting,
            self._in_order(left & {*self.last_run}),
            self._in_order(self.seen - left - saving - {*running}),
            self._in_order(saving),
            time.time() - self.begun,
            self._seconds_left(current, waiting),
        )

    def share(self) -> None:
        """Write a note of this run, so that another watch shows the same stages and times."""
        run_note.write(self.name, self.begun, self.seen)

    def _seconds_left(self, running: Sequence[Running], waiting: Sequence[str]) -> float | None:
        """Seconds of the rest, if as many stages run at a time as now; None if unknown."""
        unknown = [stage.stage for stage in running if stage.seconds_left is None]
        main = [stage for stage in running if stage.label == stage.stage and stage.seconds_left]
        totals = {stage.stage: stage.seconds + (stage.seconds_left or 0) for stage in main}
        rest = run_note.seconds_of([*unknown, *waiting], totals, self.expected)
        if not running or rest is None:
            return None
        return (rest + sum(stage.seconds_left or 0 for stage in running)) / len(running)

    def _plan(self, version: tuple[Any, ...]) -> None:
        """Update the due stages from DVC; keep the old ones while DVC cannot read the project."""
        self.planned, cpu = time.monotonic(), time.process_time()
        try:
            stages = _leading_to(self.name, engines.plan())
        except engines.PlanError:
            if not self.order:
                raise
            return
        self.order = [stage.name for stage in stages]
        self.due = {stage.name for stage in stages if stage.is_due}
        self.pause = max(PAUSE, (time.process_time() - cpu) / SHARE)
        self.version, self.planned = version, time.monotonic()

    def _in_order(self, names: Collection[str]) -> list[str]:
        return [name for name in self.order if name in names]


def _leading_to(name: str | None, stages: Sequence[engines.Stage]) -> list[engines.Stage]:
    """The stages that the page of a study or lesson depends on; all if `name` is None."""
    wanted = {f"{verb}@{name}" for verb in engines.TABLES}
    chosen = []
    for stage in reversed(stages):  # downstream first
        if name is None or stage.name in wanted:
            chosen.append(stage)
            wanted |= {*stage.upstream}
    return chosen[::-1]


def _starting() -> Iterator[str]:
    """The stages whose DVC a run that `wxb watch` started has begun."""
    note = run_note.read()
    with suppress(psutil.Error):
        for process in psutil.Process(note.pid).children(recursive=True) if note else ():
            with suppress(psutil.Error):  # it may end meanwhile
                *command, name = process.cmdline() or [""]
                if command[-1:] == engines.REPRO[-1:]:
                    yield name


def _progress(stage: str, params: Params) -> Running:
    """The progress that a running stage last wrote; without progress if it has written none."""
    try:
        pid = int((locks.LOCKS / f"{stage}.lock").read_text(encoding="utf-8"))
        note = json.loads((progress.PROGRESS_FOLDER / f"{stage}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return Running(stage)
    if note.pop("pid") != pid:  # an earlier run wrote it
        return Running(stage)
    return Running(stage, **note, epochs=_epochs(stage, params))


def _epochs(stage: str, params: Params) -> int | None:
    """The epochs that a stage trains for; None if params.yaml has no such setting."""
    verb, _, name = stage.partition("@")
    blocks: Mapping[str, Mapping[str, Any]] = {
        "train": params.experiments,
        "lesson": params.lessons,
    }
    training = getattr(blocks.get(verb, {}).get(name), "training", None)
    return getattr(training, "epochs", None)
