"""What one training takes, whoever fits the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wxb.metrics import Metric


@dataclass(frozen=True)
class TrainingRun:
    """The data, the settings and the seed of one training.

    `collate` makes batches of items, whose columns `targets` are not inputs. `summarize(logits,
    labels)` reduces a batch of validation to what `compute_metrics(summaries, labels)` needs. With
    a metric `best`, training stops early and ends with the best checkpoint's weights.
    """

    settings: Any  # a form of `Training` or `Pretraining`; of a method with a `fit` of its own, any
    train: Any  # items, or any dataset with a length
    valid: Any
    collate: Callable[..., dict[str, Any]]
    seed: int
    checkpoints: Path  # a folder; training continues from the last complete one in it
    label: str  # of the progress bar
    targets: Sequence[str] = ("labels",)
    compute_metrics: Callable[[Any, Any], dict[str, float]] | None = None
    summarize: Callable[[Any, Any], Any] | None = None
    best: Metric | None = None
