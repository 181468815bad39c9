"""One module per task: how records become targets, a model, predictions and scores.

Stages are generic: they import `wxb.tasks.<task>` by the name in params.yaml and use

- `vocabulary` in align and train,
- `aligned` in align,
- `build`, `dataset`, `summarize`, `figures`, `TARGETS` and `BEST` in train,
- `Predictor` in train (threshold, saving) and evaluate.
"""

from importlib import import_module
from types import ModuleType


def module(task: str) -> ModuleType:
    """The module of a task that params.yaml names (the schema knows which there are)."""
    return import_module(f"wxb.tasks.{task}")
