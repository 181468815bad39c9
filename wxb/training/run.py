"""The data and settings of one training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wxb.metrics import Metric


@dataclass(frozen=True)
class TrainingRun:
    """The data, the settings and the seed of one training.

    `collate` makes a batch of items, whose columns `targets` are not inputs. `summarize(logits,
    labels)` reduces a validation batch to what `compute_metrics(summaries, labels)` needs. With a
    metric `best`, training stops early and ends with the weights of the best checkpoint.
    """

    settings: Any  # a `Training` or `Pretraining`; any other for a method with its own `fit`
    train: Any  # items, or a dataset with a length
    valid: Any
    collate: Callable[..., dict[str, Any]]
    seed: int
    checkpoints: Path  # a folder; training resumes from its last complete checkpoint
    label: str  # of the progress bar
    targets: Sequence[str] = ("labels",)
    compute_metrics: Callable[[Any, Any], dict[str, float]] | None = None
    summarize: Callable[[Any, Any], Any] | None = None
    best: Metric | None = None
