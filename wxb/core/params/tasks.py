"""The tasks in wxb/tasks, their modules, and the classes of their blocks in params.yaml."""

from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, get_type_hints

from pydantic import create_model

from wxb.core.params.corpora import Corpus
from wxb.core.params.experiments import Experiment

FOLDER = Path(__file__).parents[2] / "tasks"
PARTS = ("__init__", "exports", "metrics", "page", "params")  # modules of a task; others: methods


def names() -> list[str]:
    """The names of all tasks."""
    return sorted(path.parent.name for path in FOLDER.glob("*/params.py"))


def methods(task: str) -> list[str]:
    """The names of a task's methods, which are those of its modules except PARTS."""
    return sorted({path.stem for path in (FOLDER / task).glob("*.py")} - {*PARTS})


def module(task: str, name: str) -> ModuleType:
    """Import a module of a task."""
    return import_module(f"wxb.tasks.{task}.{name}")


def method_subclass(task: str, name: str) -> type[Any]:
    """The class of a method, by name: the only subclass of `Method` that its module defines."""
    own, base = module(task, name), import_module("wxb.tasks.methods").Method
    classes = (value for value in vars(own).values() if isinstance(value, type))
    return next(c for c in classes if issubclass(c, base) and c.__module__ == own.__name__)


@cache
def experiment_class(task: str, method: str) -> type[Experiment]:
    """The annotation `experiment` of a method's class, as a subclass for this task and method."""
    cls = get_type_hints(method_subclass(task, method))["experiment"]
    return _with_values(f"{task} {method}", cls, task=task, method=method)


@cache
def corpus_class(task: str) -> type[Corpus]:
    """The class `Corpus` of a task's params.py, as a subclass that accepts this task only."""
    return _with_values(f"{task} corpus", module(task, "params").Corpus, task=task)


def _with_values(name: str, cls: type[Any], **values: str) -> Any:
    """A subclass of this name, for docs/params.md, whose blocks must have these values."""
    keys: dict[str, Any] = {key: (Literal[value], ...) for key, value in values.items()}
    return create_model(name, __base__=cls, __doc__=cls.__doc__, **keys)
