"""The tasks that there are, their modules, and the forms of blocks that their `params` define."""

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
    """The tasks that there are."""
    return sorted(path.parent.name for path in FOLDER.glob("*/params.py"))


def module(task: str, name: str) -> ModuleType:
    """A module of a task, imported on first use."""
    return import_module(f"wxb.tasks.{task}.{name}")


def has_module(task: str, name: str) -> bool:
    """Whether a task has a module of this name; nothing of it is imported."""
    spec = find_spec(f"wxb.tasks.{task}.{name}")
    return spec is not None and spec.origin is not None  # a folder without __init__.py has none


def prediction(task: str, method: str) -> type[Prediction]:
    """The form of `prediction` of the experiments that do a task by a method."""
    form: Any = module(task, "params").AnyExperiment
    for part in getattr(form, "__metadata__", ()):
        if isinstance(part, OneOf):
            form = part.forms()[method]
    found: type[Prediction] = form.model_fields["prediction"].annotation
    return found


def forms(name: str) -> Callable[[], Mapping[str, Any]]:
    """What finds, by task, the form of this name."""
    return lambda: {task: getattr(module(task, "params"), name) for task in names()}
