"""Model cards of named entity recognition."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wxb.core.files import read_json
from wxb.core.params.experiments import Experiment
from wxb.tasks import cards
from wxb.tasks.ner.metrics import BY_TYPE


class Card(cards.Card):
    """Cards of models that find entities."""

    TEMPLATE = "ner/card.md"
    TASK = "token-classification"
    TAGS = ("named-entity-recognition",)
    SCORES = ("f1", "precision", "recall")

    def pipeline(self, experiment: Experiment) -> str:
        """The hub's pipeline for the model."""
        return "text-generation" if experiment.method == "generation" else self.TASK

    def facts(
        self, experiment: Experiment, model: Path, predictions: Path, scores: Mapping[str, float]
    ) -> dict[str, Any]:
        """The variables of card.md: scores by type, and how to use the model without wxb.

        Raises WxbError if there are no scores by type.
        """
        return {
            "missed": round(100 * (1 - scores["recall"])),
            "by_type": cards.rows_by_f1(predictions / BY_TYPE, "type"),
            # Without this, transformers would add BERT's pooler with random weights.
            "options": ", add_pooling_layer=False" if _architecture(model) == "bert" else "",
            "why_not": _why_not_transformers(experiment),
        }


def _architecture(model: Path) -> str:
    """The model type of a full model; empty for an adapter."""
    config = model / "config.json"
    return str(read_json(config)["model_type"]) if config.exists() else ""


def _why_not_transformers(experiment: Experiment) -> str:
    """Why the model needs wxb; empty if transformers can predict the tags."""
    if experiment.method == "crf":
        return "transformers has no such model."
    if experiment.method == "generation":
        return "The model generates answers in a format that only wxb parses."
    if "word features" in experiment.traits:
        return "The head needs features of neighbouring words, which only wxb computes."
    if experiment.tuning.four_bit:
        return "The backbone is quantized to 4 bits; wxb loads it."
    return ""
