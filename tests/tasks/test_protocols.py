"""Every task defines what its base classes require."""

import pytest

from wxb import tasks
from wxb.core.params.tasks import methods


def missing_attributes(cls):
    """The class attributes that base classes declare and a class does not define."""
    declared = {name for base in cls.__mro__[:-1] for name in vars(base).get("__annotations__", {})}
    return {name for name in declared if name.isupper() and not hasattr(cls, name)}


@pytest.mark.parametrize("task", tasks.names())
@pytest.mark.parametrize("part", ["record", "reading", "metrics", "page"])
def test_a_task_has_every_part(task, part):
    assert missing_attributes(type(getattr(tasks.get(task), part))) == set()


@pytest.mark.parametrize(
    ("task", "name"), [(task, name) for task in tasks.names() for name in methods(task)]
)
def test_methods_and_predictors_are_complete(task, name):
    method = tasks.get(task).method(name)
    assert method.__abstractmethods__ == method.PREDICTOR.__abstractmethods__ == frozenset()
    assert missing_attributes(method) == set()


def test_a_missing_optional_part_is_none():
    assert tasks.get("chat").exports is tasks.get("chat").new is None
    assert tasks.get("ner").new is not None
