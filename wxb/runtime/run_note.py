"""The note of a run that `wxb watch` started, for other watchers; and what its stages take."""

from __future__ import annotations

import os
from collections.abc import Collection
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


def seconds_of(stages: Collection[str]) -> float | None:
    """Seconds that stages take one after the other, from the costs of earlier runs.

    A stage that never ran counts as the mean of its verb. None if a training has no such mean.
    """
    means = _mean_seconds()
    total = 0.0
    for stage in stages:
        verb, _, name = stage.partition("@")
        seconds = _seconds(paths.cost(verb, name))
        if seconds is None and verb in LONG and verb not in means:
            return None
        total += means.get(verb, 0.0) if seconds is None else seconds
    return total


def _mean_seconds() -> dict[str, float]:
    """The mean seconds of the stages that ran here, by verb."""
    costs: dict[str, list[float]] = {}
    for path in paths.COST.glob("*/*.json"):
        seconds = _seconds(path)
        if seconds is not None:
            costs.setdefault(path.parent.name, []).append(seconds)
    return {verb: fmean(seconds) for verb, seconds in costs.items()}


def _seconds(cost: Path) -> float | None:
    try:
        return float(read_json(cost)["seconds"])
    except (OSError, ValueError, KeyError):
        return None
