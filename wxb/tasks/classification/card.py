"""The model cards of text classifiers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wxb.core.files import read_json
from wxb.core.params.experiments import Experiment
from wxb.tasks import cards
from wxb.tasks.classification.metrics import CLASSES


class Card(cards.Card):
    """The model cards of text classifiers."""

    TEMPLATE = "classification/card.md"
    TASK = "text-classification"
    TAGS = ("text-classification",)
    SCORES = ("accuracy", "f1_macro", "auroc")

    def facts(
        self, experiment: Experiment, model: Path, predictions: Path, scores: Mapping[str, float]
    ) -> dict[str, Any]:
        """Scores by class, and why plain transformers cannot load the model.

        Raises WxbError if there are no scores by class.
        """
        return {
            "by_class": cards.rows_by_f1(predictions / CLASSES, "class"),
            "why_not": _why_not_transformers(experiment, model),
        }


def _why_not_transformers(experiment: Experiment, model: Path) -> str:
    """Why plain transformers cannot load a model folder, as a sentence; empty if it can."""
    why = ""
    config = model / "config.json"
    if experiment.method != "encoder":
        why = "transformers has no such model"
    elif not config.exists():
        why = "it is an adapter, and its head is a file of its own"
    elif experiment.model.pooling == "mean":  # type: ignore[attr-defined]
        why = "transformers has no classifier with mean pooling"
    elif "SequenceClassification" not in (read_json(config)["architectures"] or [""])[0]:
        why = "transformers has no such head for this backbone"
    return f"Plain transformers cannot load it: {why}." if why else ""
