"""The note of a run that `wxb watch` started, for other watchers; and what its stages take."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import psutil  # type: ignore[import-untyped]

from wxb.core import paths
from wxb.core.files import publish, read_json, write_json

PATH = Path(".wxb/run.json")
LONG = ("pretrain", "train")  # verbs of stages whose duration cannot be guessed


class RunNote(NamedTuple):
    """The process of a run, its study (None: all), its begin (epoch), and its stages so far."""

    pid: int
    name: str | None
    begun: float
    stages: list[str]


def read() -> RunNote | None:
    """The note of the run that is at work in this folder; None if there is none."""
    try:
        note = RunNote(**read_json(PATH))
        is_alive = psutil.Process(note.pid).create_time() <= note.begun
    except (OSError, ValueError, TypeError, psutil.Error):
        return None
    return note if is_alive else None


def write(name: str | None, begun: float, stages: Collection[str]) -> None:
    """Write the note of this process's run."""
    with publish(PATH) as (draft,):
        write_json(draft, RunNote(os.getpid(), name, begun, sorted(stages))._asdict())


def finished_since(stage: str, begun: float) -> bool:
    """Whether a stage wrote its cost, which is the last that it does, since a time (epoch)."""
    verb, _, name = stage.partition("@")
    try:
        return paths.cost(verb, name).stat().st_mtime >= begun
    except OSError:
        return False


def seconds_of(
    stages: Collection[str], running: Mapping[str, float], expected: Mapping[str, float]
) -> float | None:
    """Seconds that stages take one after the other, from the costs of earlier runs.

    `running` has the estimated seconds of stages that run now. A stage that never ran here takes
    its `expected` seconds, scaled to this machine, or else the mean of its verb. None if a training
    has neither.
    """
    measured = {**_costs(), **running}
    both = [stage for stage in expected if measured.get(stage)]
    scale = sum(measured[s] for s in both) / sum(expected[s] for s in both) if both else 1.0
    by_verb: dict[str, list[float]] = {}
    for stage, seconds in measured.items():
        if _verb(stage) in LONG and seconds < 1:
            continue  # a baseline, or a backbone that is not trained
        by_verb.setdefault(_verb(stage), []).append(seconds)
    means = {verb: fmean(values) for verb, values in by_verb.items()}
    known = {stage: scale * seconds for stage, seconds in expected.items()} | measured
    total = 0.0
    for stage in stages:
        verb = _verb(stage)
        if stage not in known and verb in LONG and verb not in means:
            return None
        total += known.get(stage, means.get(verb, 0.0))
    return total


def _costs() -> dict[str, float]:
    """The seconds of the stages that ran here."""
    files = {f"{path.parent.name}@{path.stem}": path for path in paths.COST.glob("*/*.json")}
    return {stage: s for stage, path in files.items() if (s := _seconds(path)) is not None}


def _verb(stage: str) -> str:
    return stage.partition("@")[0]


def _seconds(cost: Path) -> float | None:
    try:
        return float(read_json(cost)["seconds"])
    except (OSError, ValueError, KeyError):
        return None
