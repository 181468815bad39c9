"""Every task has what the protocols say, and tells mypy to hold it to them."""

import ast
from collections import Counter
from pathlib import Path

import pytest

from wxb import tasks
from wxb.charts.parts import TaskPage
from wxb.corpora.labelling import Labelling
from wxb.corpora.reading import Reading
from wxb.metrics.scorer import Scorer
from wxb.params.tasks import FOLDER, names
from wxb.tasks.methods import Method, Predictor


def methods(task):
    return sorted(path.parent.name for path in (FOLDER / task).glob("*/method.py"))


def lacking(found, protocol):
    return [name for name in vars(protocol) if name[0] != "_" and not hasattr(found, name)]


@pytest.mark.parametrize("task", names())
def test_a_task_has_every_name(task):
    assert lacking(tasks.record(task), Labelling) == []
    assert lacking(tasks.reading(task), Reading) == []
    assert lacking(tasks.metrics(task), Scorer) == []
    assert lacking(tasks.page(task), TaskPage) == []


@pytest.mark.parametrize(("task", "method"), [(t, m) for t in names() for m in methods(t)])
def test_a_method_has_every_name(task, method):
    found = tasks.method(task, method)
    assert lacking(found, Method) == []
    assert lacking(found.Predictor, Predictor) == []


@pytest.mark.parametrize("task", names())
def test_mypy_holds_a_task_to_the_protocols(task):
    tree = ast.parse(Path(FOLDER, task, "__init__.py").read_text(encoding="utf-8"))
    held = Counter(
        ast.unparse(n.annotation) for n in ast.walk(tree) if isinstance(n, ast.AnnAssign)
    )
    for own in ("TaskCard", "TaskExports"):  # for those that want them
        held.pop(own, None)
    one_each = dict.fromkeys(("Labelling", "Reading", "Scorer", "TaskPage"), 1)
    assert held == {**one_each, "Method": len(methods(task))}


def test_what_a_module_lacks_is_found():
    assert "predict" in lacking(object(), Predictor)
