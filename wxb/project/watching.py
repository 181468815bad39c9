"""What a run of the DAG is doing at this moment: which stages run, wait and are done."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from wxb.core import progress
from wxb.core.params import Params
from wxb.project import dag, engines, staleness

PAUSE = 3.0  # seconds at least between two questions to DVC, each of which takes it one
SHARE = 0.1  # of one core, at most, that these questions may take from the run
SAVING = 20.0  # seconds in which DVC may still save what a stage has made


class Running(NamedTuple):
    """A stage that runs; of its progress what it has told so far."""

    stage: str
    label: str = ""
    done: int = 0
    total: int | None = None
    unit: str = ""
    seconds: float = 0.0  # since that progress began
    figures: Mapping[str, Any] = {}
    epochs: int | None = None

    @property
    def share(self) -> float | None:
        """How much of it is done, from 0 to 1; None where nobody knows."""
        return min(1.0, self.done / self.total) if self.total else None

    @property
    def left(self) -> float | None:
        """Seconds that the rest takes at the speed so far."""
        if not self.total or not self.done or self.seconds < 1:
            return None
        return self.seconds * max(0, self.total - self.done) / self.done

    @property
    def epoch(self) -> int | None:
        """The epoch that a training is in, from 1."""
        if not self.epochs or not self.total or self.label.partition(" (seed ")[0] != self.stage:
            return None
        return min(self.epochs, 1 + self.done * self.epochs // self.total)


class State(NamedTuple):
    """The stages of a run by what becomes of them, each list in the order of the DAG."""

    running: Sequence[Running]
    waiting: Sequence[str]
    stopped: Sequence[str]  # those that ran and did not finish
    done: Sequence[str]

    @property
    def over(self) -> bool:
        """Whether nothing is left to do."""
        return not (self.running or self.waiting or self.stopped)


class Watch:
    """The project in the working folder from now on; stages that were up to date are left out.

    With the name of a study or lesson, only what leads to it. Nothing is locked and nothing is
    changed: a run is not disturbed.
    """

    def __init__(self, params: Params, name: str | None = None) -> None:
        self.params, self.name = params, name
        self.order: list[str] = []
        self.due: set[str] = set()
        self.seen: set[str] = set()  # was due, or ran
        self.ran: dict[str, float] = {}  # due still, by the time when it was last seen to run
        self.asked, self.pause = -PAUSE, PAUSE
        self.version: tuple[Any, ...] = ()

    def look(self) -> State:
        """The state now. Raises PlanError if DVC cannot read the project at first."""
        running = staleness.running()
        # DVC writes the first when it has saved what a stage made, and lets go of it by the second.
        version = (*running, *_stat(dag.LOCKFILE), *_stat(dag.RWLOCK))
        if version != self.version and time.monotonic() - self.asked >= self.pause:
            self._ask(version)
        now = time.monotonic()
        self.seen |= {*self.due, *running} & {*self.order}
        self.ran = {name: at for name, at in self.ran.items() if name in self.due}
        self.ran |= dict.fromkeys(running, now)
        # Whether one that ended is done, only DVC can say, and it was not asked yet.
        told = version == self.version
        ended = {name: at for name, at in self.ran.items() if name not in running}
        saving = {name for name, at in ended.items() if not told or now - at < SAVING}
        left = {*self.due} - {*running} - saving
        return State(
            [
                Running(name, f"{name}: saving") if name in saving else _told(name, self.params)
                for name in self._listed({*running} | saving)
            ],
            self._listed(left - {*self.ran}),
            self._listed(left & {*self.ran}),
            self._listed(self.seen - left - saving - {*running}),
        )

    def _ask(self, version: tuple[Any, ...]) -> None:
        """Ask DVC what is due; where it cannot say as it is writing itself, again in a while."""
        self.asked, before = time.monotonic(), time.process_time()
        try:
            stages = _leading_to(self.name, engines.plan())
        except engines.PlanError:
            if not self.order:
                raise
            return
        self.order = [stage.name for stage in stages]
        self.due = {stage.name for stage in stages if stage.due}
        self.pause = max(PAUSE, (time.process_time() - before) / SHARE)
        self.version, self.asked = version, time.monotonic()

    def _listed(self, names: Iterable[str]) -> list[str]:
        known = {*names}
        return [name for name in self.order if name in known]


def _leading_to(name: str | None, stages: Sequence[engines.Stage]) -> list[engines.Stage]:
    """The stages without which a study or lesson has no page; all without a name."""
    wanted = {f"{verb}@{name}" for verb in engines.TABLES}
    chosen = []
    for stage in reversed(stages):  # downstream first
        if name is None or stage.name in wanted:
            chosen.append(stage)
            wanted |= {*stage.upstream}
    return chosen[::-1]


def _told(stage: str, params: Params) -> Running:
    """What a stage that runs has noted of its progress; an earlier run's note tells nothing."""
    try:
        owner = int((staleness.LOCKS / f"{stage}.lock").read_text(encoding="utf-8"))
        note = json.loads((progress.NOTES / f"{stage}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return Running(stage)
    if note.pop("pid") != owner:
        return Running(stage)
    return Running(stage, **note, epochs=_epochs(stage, params))


def _epochs(stage: str, params: Params) -> int | None:
    """How many epochs a stage trains for, as far as params.yaml says so."""
    verb, _, name = stage.partition("@")
    blocks: Mapping[str, Mapping[str, Any]] = {
        "train": params.experiments,
        "lesson": params.lessons,
    }
    training = getattr(blocks.get(verb, {}).get(name), "training", None)
    return getattr(training, "epochs", None)


def _stat(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0, 0
    return found.st_mtime_ns, found.st_size
