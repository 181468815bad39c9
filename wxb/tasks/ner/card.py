"""What the model card of an experiment that finds spans says besides what every card says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wxb.core.files import read_json
from wxb.core.params.experiments import Experiment
from wxb.tasks import cards
from wxb.tasks.ner.metrics import BY_TYPE


class Card(cards.Card):
    """Cards of models that find spans."""

    TEMPLATE = Path(__file__).with_suffix(".md")
    TASK = "token-classification"
    TAGS = ("named-entity-recognition",)
    SCORES = ("f1", "precision", "recall")

    def pipeline(self, experiment: Experiment) -> str:
        """The hub's name of what the model does."""
        return self.TASK if experiment.method == "tagging" else "text-generation"

    def facts(
        self, experiment: Experiment, model: Path, predictions: Path, scores: Mapping[str, float]
    ) -> dict[str, Any]:
        """The scores by type, and what plain transformers need or why they cannot use the model.

        Raises WxbError where there are no scores by type.
        """
        return {
            "missed": round(100 * (1 - scores["recall"])),
            "by_type": cards.worst_first(predictions / BY_TYPE, "type"),
            # BERT's pooler, which a tagger has no use for, would be made anew from random numbers.
            "options": ", add_pooling_layer=False" if _architecture(model) == "bert" else "",
            "why_not": _only_ours(experiment),
        }


def _architecture(model: Path) -> str:
    """The architecture of a whole model; empty for an adapter."""
    config = model / "config.json"
    return str(read_json(config)["model_type"]) if config.exists() else ""


def _only_ours(experiment: Experiment) -> str:
    """Why plain transformers cannot give what the model says; empty where they can."""
    if experiment.method == "generation":
        return "The model writes its answers in a form of wxb's own, which wxb reads and locates."
    if "word features" in experiment.traits:
        return "Its head reads the letters of the words around besides, which wxb gives to it."
    if experiment.tuning.four_bit:
        return "Its backbone is kept in 4 bits, in the way that wxb loads it."
    return ""
