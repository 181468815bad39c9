"""The forms of blocks that tasks bring: what their modules `params` define, by the task's name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from wxb.params.experiments import Prediction
from wxb.params.section import OneOf

FOLDER = Path(__file__).parents[1] / "tasks"


def names() -> list[str]:
    """The tasks that there are."""
    return sorted(path.parent.name for path in FOLDER.glob("*/params.py"))


def prediction(task: str, method: str) -> type[Prediction]:
    """The form of `prediction` of the experiments that do a task by a method."""
    form: Any = import_module(f"wxb.tasks.{task}.params").AnyExperiment
    for part in getattr(form, "__metadata__", ()):
        if isinstance(part, OneOf):
            form = part.forms()[method]
    found: type[Prediction] = form.model_fields["prediction"].annotation
    return found


def forms(name: str) -> Callable[[], Mapping[str, Any]]:
    """What finds, by task, the form of this name."""
    return lambda: {
        task: getattr(import_module(f"wxb.tasks.{task}.params"), name) for task in names()
    }
