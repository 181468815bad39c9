"""Classes by a recurrent network that reads words both ways, and never reads padding."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wxb.tasks.classification import predictor
from wxb.tasks.classification.params import Recurrent
from wxb.tasks.classification.predictor import Classifier


class RecurrentClassifier(Classifier):
    """A trained model of this method."""

    @classmethod
    def load_model(cls, folder: Path, settings: Mapping[str, Any], tokenizer: Any) -> Any:
        """The model that was saved in a folder."""
        from wxb.tasks.classification.recurrent import model

        size = {"vocab_size": len(tokenizer), "classes": len(settings["labels"])}
        return model.Recurrent.from_pretrained(folder, **size, **settings["shape"])

    def own_settings(self, experiment: Any) -> dict[str, Any]:
        """The shape of the network."""
        return {"shape": experiment.model.model_dump()}


class Method(predictor.Method):
    """A recurrent network over the vocabulary of a backbone."""

    experiment: Recurrent
    Predictor = RecurrentClassifier

    def build(self, backbone: Path) -> Any:
        """The model that training starts from, random; of the backbone it has the vocabulary."""
        from wxb.tasks.classification.recurrent import model

        shape = self.experiment.model.model_dump()
        return model.Recurrent(len(self.tokenizer), len(self.labels), **shape)
