"""Every task has all that its base classes ask for."""

import pytest

from wxb import tasks

PARTS = ("record", "reading", "metrics", "page")
OPTIONAL = ("card", "exports")


def lacking(cls):
    """The class attributes that bases declare and a class does not define."""
    declared = {name for base in cls.__mro__[:-1] for name in vars(base).get("__annotations__", {})}
    return {name for name in declared if name.isupper() and not hasattr(cls, name)}


@pytest.mark.parametrize("task", tasks.names())
@pytest.mark.parametrize("part", PARTS)
def test_a_task_has_every_part(task, part):
    assert lacking(type(getattr(tasks.get(task), part))) == set()


@pytest.mark.parametrize("task", tasks.names())
@pytest.mark.parametrize("part", OPTIONAL)
def test_an_optional_part_is_whole_or_none(task, part):
    found = getattr(tasks.get(task), part)
    assert found is None or lacking(type(found)) == set()


@pytest.mark.parametrize(
    ("task", "name"), [(task, name) for task in tasks.names() for name in tasks.get(task).methods]
)
def test_a_method_and_its_predictor_can_be_made(task, name):
    method = tasks.get(task).method(name)
    assert method.__abstractmethods__ == method.Predictor.__abstractmethods__ == frozenset()
    assert lacking(method) == set()


def test_a_task_without_an_optional_part_has_none():
    assert tasks.get("chat").card is None
    assert tasks.get("chat").exports is None
    assert tasks.get("chat").new is None
    assert tasks.get("ner").new is not None


def test_a_part_that_every_task_has_must_be_there():
    with pytest.raises(ModuleNotFoundError, match="no_such_task"):
        _ = tasks.get("no_such_task").metrics
