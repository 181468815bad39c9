"""Classes by a recurrent network that reads words both ways, and never reads padding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wxb.tasks import methods
from wxb.tasks.classification import predictor
from wxb.tasks.classification.params import Recurrent
from wxb.tasks.classification.predictor import Classifier
from wxb.text.tokenizers import SavedTokenizer

TARGETS, BEST = predictor.TARGETS, predictor.BEST

vocabulary, encode, collator = methods.vocabulary, methods.encode, methods.collator
summarize, fit = methods.summarize, methods.fit
aligned, dataset, compute_metrics = predictor.aligned, predictor.dataset, predictor.compute_metrics


def build(backbone: Path, labels: Sequence[str], experiment: Recurrent, tokenizer: Any) -> Any:
    """The model that training starts from, random; of the backbone it has the vocabulary."""
    from wxb.tasks.classification.recurrent import model

    return model.Recurrent(len(tokenizer), len(labels), **experiment.model.model_dump())


class Predictor(Classifier):
    """A trained model of this method."""

    @classmethod
    def load_model(cls, folder: Path, settings: Mapping[str, Any]) -> Any:
        """The model that was saved in a folder."""
        from wxb.tasks.classification.recurrent import model

        size = {"vocab_size": len(SavedTokenizer(folder)), "classes": len(settings["labels"])}
        return model.Recurrent.from_pretrained(folder, **size, **settings["shape"])

    def own_settings(self, experiment: Any) -> dict[str, Any]:
        """The shape of the network."""
        return {"shape": experiment.model.model_dump()}
