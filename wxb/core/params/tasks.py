"""The tasks in wxb/tasks, their modules, and the blocks of params.yaml that they define."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from wxb.core.params.experiments import Prediction
from wxb.core.params.section import OneOf

FOLDER = Path(__file__).parents[2] / "tasks"


def names() -> list[str]:
    """The names of all tasks."""
    return sorted(path.parent.name for path in FOLDER.glob("*/params.py"))


def module(task: str, name: str) -> ModuleType:
    """Import a module of a task."""
    return import_module(f"wxb.tasks.{task}.{name}")


def has_module(task: str, name: str) -> bool:
    """Whether a task, which must exist, has a module of this name; does not import the module."""
    spec = find_spec(f"wxb.tasks.{task}.{name}")
    return spec is not None and spec.origin is not None  # a folder without __init__.py has none


def prediction_class(task: str, method: str) -> type[Prediction]:
    """The class of the `prediction` block of experiments with this task and method."""
    experiment: Any = module(task, "params").AnyExperiment
    for annotation in getattr(experiment, "__metadata__", ()):
        if isinstance(annotation, OneOf):
            experiment = annotation.variants()[method]
    cls: type[Prediction] = experiment.model_fields["prediction"].annotation
    return cls


def variants(name: str) -> Callable[[], Mapping[str, Any]]:
    """A function that returns, by task, the class `name` of the task's module `params`."""
    return lambda: {task: getattr(module(task, "params"), name) for task in names()}
