"""The data and settings of one training, and its curves."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
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


def write_curves(folder: Path, history: Sequence[Mapping[str, float]]) -> None:
    """Write a CSV file (`step`, value) for each metric of a training history to a new folder.

    `dvc plots` draws them.
    """
    folder.mkdir(parents=True)
    for name in sorted({key for row in history for key in row} - {"step", "epoch"}):
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(["step", name])
            rows.writerows([row["step"], row[name]] for row in history if name in row)
