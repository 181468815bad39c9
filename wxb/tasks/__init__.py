"""One folder per task, and in it one per method: from records to targets, a model, predictions.

Stages, reports and commands know tasks only through this module: they name a task and get its
parts. `docs/adding-a-task.md` tells what each part has.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from wxb.charts.parts import TaskPage  # takes plotly
    from wxb.corpora.labelling import Labelling
    from wxb.corpora.reading import Reading
    from wxb.metrics.scorer import Scorer
    from wxb.tasks.methods import Method


def record(task: str) -> Labelling:
    """What the gold of a task is."""
    return cast("Labelling", import_module(f"wxb.tasks.{task}.record"))


def reading(task: str) -> Reading:
    """How the records of a task are read."""
    return cast("Reading", import_module(f"wxb.tasks.{task}.reading"))


def metrics(task: str) -> Scorer:
    """How a task is scored."""
    return cast("Scorer", import_module(f"wxb.tasks.{task}.metrics"))


def method(task: str, name: str) -> Method:
    """One way of doing a task."""
    return cast("Method", import_module(f"wxb.tasks.{task}.{name}.method"))


def page(task: str) -> TaskPage:
    """What only studies of a task tell on their pages."""
    return cast("TaskPage", import_module(f"wxb.tasks.{task}.page"))
