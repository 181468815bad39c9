"""What the model card of an experiment that classifies texts says besides what every card says."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wxb.errors import WxbError
from wxb.files import read_json
from wxb.params.experiments import Experiment
from wxb.tasks.classification.metrics import CLASSES

TEMPLATE = Path(__file__).with_suffix(".md")
TASK = "text-classification"
TAGS = ("text-classification",)
SCORES = ("accuracy", "f1_macro", "auroc")


def pipeline(experiment: Experiment) -> str:
    """The hub's name of what the model does."""
    return TASK


def facts(
    experiment: Experiment, model: Path, predictions: Path, scores: Mapping[str, float]
) -> dict[str, Any]:
    """The scores by class, and why plain transformers cannot use the model, where they cannot.

    Raises WxbError where there are no scores by class.
    """
    return {
        "by_class": _rows(predictions / CLASSES),
        "why_not": _only_ours(experiment, model),
        "further": sorted(
            key.removesuffix("_accuracy") for key in scores if key.endswith("_accuracy")
        ),
    }


def _only_ours(experiment: Experiment, model: Path) -> str:
    """Why plain transformers cannot give what the model says; empty where they can."""
    if experiment.method != "encoder":
        return "It is no model of transformers."
    config = model / "config.json"
    if not config.exists():
        return "It is an adapter, whose head lies beside it."
    if experiment.model.pooling == "mean":  # type: ignore[attr-defined]
        return "It reads the mean of all tokens, for which transformers has no such model."
    if "SequenceClassification" not in (read_json(config)["architectures"] or [""])[0]:
        return "Its head is one that transformers has not for its backbone."
    return ""


def _rows(table: Path) -> list[dict[str, Any]]:
    """The scores by class, the worst first."""
    if not table.exists():
        raise WxbError(
            f"{table}: not there yet; run `dvc repro evaluate@{table.parent.name}` first"
        )
    with table.open(encoding="utf-8", newline="") as file:
        numbers = ("precision", "recall", "f1")
        rows = [
            {**row, **{key: float(row[key]) for key in numbers}} for row in csv.DictReader(file)
        ]
    return sorted(rows, key=lambda row: (row["f1"], row["class"]))
