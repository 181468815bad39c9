"""What the model card of an experiment that classifies texts says besides what every card says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wxb.core.files import read_json
from wxb.core.params.experiments import Experiment
from wxb.tasks import cards
from wxb.tasks.classification.metrics import CLASSES


class Card(cards.Card):
    """Cards of models that classify texts."""

    TEMPLATE = Path(__file__).with_suffix(".md")
    TASK = "text-classification"
    TAGS = ("text-classification",)
    SCORES = ("accuracy", "f1_macro", "auroc")

    def facts(
        self, experiment: Experiment, model: Path, predictions: Path, scores: Mapping[str, float]
    ) -> dict[str, Any]:
        """The scores by class, and why plain transformers cannot use the model, where they cannot.

        Raises WxbError where there are no scores by class.
        """
        return {
            "by_class": cards.worst_first(predictions / CLASSES, "class"),
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
