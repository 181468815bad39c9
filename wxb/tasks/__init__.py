"""One folder per task, and in it one per method: from records to targets, a model, predictions.

Stages are generic: they import `wxb.tasks.<task>.<method>.method` by the names in params.yaml, use

- `vocabulary` in align and train,
- `aligned` in align,
- `build`, `dataset`, `summarize`, `figures`, `TARGETS` and `BEST` in train,
- `Predictor` in train (threshold, saving) and evaluate.
"""

from importlib import import_module
from types import ModuleType


def module(task: str, method: str) -> ModuleType:
    """The module of a method that params.yaml names (the schema knows which there are)."""
    return import_module(f"wxb.tasks.{task}.{method}.method")
