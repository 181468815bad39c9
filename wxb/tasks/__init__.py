"""Tasks: one folder per task, with one module per method.

Stages, reports and commands use tasks only through this module: `get` returns a `Task`, whose parts
are imported on first use. A folder with a `params.py` is a task (`core/params/tasks.py`).
`docs/adding-a-task.md` describes each part.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast

from wxb.core.params.tasks import method_subclass, module, names

if TYPE_CHECKING:
    from wxb.corpora.reading import Reading
    from wxb.corpora.records import Labelling
    from wxb.metrics.scorer import Scorer
    from wxb.reporting.parts import Page  # imports plotly
    from wxb.tasks.methods import Method

__all__ = ["Part", "Task", "get", "names"]

T = TypeVar("T")


class Part(Generic[T]):
    """A task's module, or a constant or class instance in it; None if `optional` and missing."""

    def __init__(self, module: str, name: str | None = None, *, optional: bool = False) -> None:
        self.module, self.attribute, self.optional = module, name, optional

    def __get__(self, task: Task, owner: type[Task]) -> T:
        if self.optional:
            spec = find_spec(f"wxb.tasks.{task.name}.{self.module}")
            if spec is None or spec.origin is None:  # a folder without __init__.py
                return cast("T", None)
        part: Any = module(task.name, self.module)
        value = getattr(part, self.attribute) if self.attribute else part
        return cast("T", value() if isinstance(value, type) else value)


@dataclass(frozen=True)
class Task:
    """A task and its parts. Each access imports the part's module and creates a new instance."""

    name: str

    record: ClassVar[Part[Labelling]] = Part("record", "LABELLING")
    reading: ClassVar[Part[Reading]] = Part("reading", "Reading")
    metrics: ClassVar[Part[Scorer]] = Part("metrics", "Scorer")
    page: ClassVar[Part[Page]] = Part("page", "Page", optional=True)
    exports: ClassVar[Part[Any]] = Part("exports", optional=True)
    new: ClassVar[Part[Any]] = Part("new", optional=True)

    def method(self, name: str) -> type[Method]:
        """The class of one of its methods, by name."""
        return method_subclass(self.name, name)


get = Task  # the task of a name; an unknown name fails when a part is first used
