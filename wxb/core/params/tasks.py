"""The tasks in wxb/tasks, their modules, and the blocks of params.yaml that they define."""

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal, Union

from pydantic import Field, create_model

from wxb.core.params.corpora import Corpus
from wxb.core.params.experiments import Experiment

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


@cache
def corpus_class(task: str) -> type[Corpus]:
    """The class of the blocks of `corpora` with this task."""
    return _with_values(module(task, "params").Corpus, task=task)


@cache
def methods(task: str) -> dict[str, type[Experiment]]:
    """The class of the blocks of `experiments` with this task, by method."""
    classes = module(task, "params").METHODS
    return {name: _with_values(cls, task=task, method=name) for name, cls in classes.items()}


def _with_values(cls: type[Any], **values: str) -> Any:
    """A subclass whose blocks must have these values, such as that of `task`."""
    keys: dict[str, Any] = {key: (Literal[value], ...) for key, value in values.items()}
    place = f"wxb.tasks.{values['task']}.params"
    return create_model(cls.__name__, __base__=cls, __doc__=cls.__doc__, __module__=place, **keys)


def block_unions() -> dict[str, Any]:
    """The classes of `corpora` and of `experiments` as unions: `AnyCorpus` and `AnyExperiment`."""
    experiments = (_tagged_union(methods(task).values(), "method") for task in names())
    return {
        "AnyCorpus": _tagged_union(map(corpus_class, names()), "task"),
        "AnyExperiment": _tagged_union(experiments, "task"),
    }


def _tagged_union(classes: Iterable[Any], discriminator: str) -> Any:
    """The union of classes that the value of a key selects; a single class as it is."""
    first, *others = classes
    if not others:
        return first
    return Annotated[Union[(first, *others)], Field(discriminator=discriminator)]
