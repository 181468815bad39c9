"""The tasks in wxb/tasks, their modules, and the blocks of params.yaml that they define."""

from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Union, get_args

from pydantic import Field

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


def corpus_class(task: str) -> type[Corpus]:
    """The class of the blocks of `corpora` with this task."""
    return module(task, "params").Corpus


def methods(task: str) -> dict[str, type[Experiment]]:
    """The class of the blocks of `experiments` with this task, by method."""
    classes = module(task, "params").METHODS
    return {get_args(cls.model_fields["method"].annotation)[0]: cls for cls in classes}


def any_block() -> dict[str, Any]:
    """The annotations of a block of `corpora` and of `experiments`, by their names in Params."""
    experiments = (_one_of(methods(task).values(), "method") for task in names())
    return {
        "AnyCorpus": _one_of(map(corpus_class, names()), "task"),
        "AnyExperiment": _one_of(experiments, "task"),
    }


def _one_of(classes: Iterable[Any], discriminator: str) -> Any:
    """The union of classes that the value of a key selects; a single class as it is."""
    first, *others = classes
    if not others:
        return first
    return Annotated[Union[(first, *others)], Field(discriminator=discriminator)]
