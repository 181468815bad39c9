"""The tasks in wxb/tasks, their modules, and the blocks of params.yaml that they define."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

from wxb.core.params.corpora import Corpus
from wxb.core.params.experiments import Experiment, Prediction
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


def corpora() -> dict[str, type[Corpus]]:
    """The class of the blocks of `corpora` for each task."""
    return {task: module(task, "params").Corpus for task in names()}


def experiments() -> dict[str, Any]:
    """The annotation of the blocks of `experiments` for each task: one class for each method."""
    return {
        task: Annotated[Experiment, OneOf("method", partial(methods, task))] for task in names()
    }


def methods(task: str) -> Mapping[str, type[Experiment]]:
    """The class of the blocks of `experiments` for each method of a task."""
    classes: Mapping[str, type[Experiment]] = module(task, "params").METHODS
    return classes


def prediction_class(task: str, method: str) -> type[Prediction]:
    """The class of the `prediction` block of experiments with this task and method."""
    annotation: Any = methods(task)[method].model_fields["prediction"].annotation
    cls: type[Prediction] = annotation
    return cls
