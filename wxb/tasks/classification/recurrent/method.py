"""Text classification by a bidirectional LSTM, which never reads padding."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wxb.tasks.classification import predictor
from wxb.tasks.classification.params import Recurrent
from wxb.tasks.classification.predictor import Classifier


class RecurrentClassifier(Classifier):
    """A trained bidirectional LSTM."""

    @classmethod
    def load_model(cls, folder: Path, settings: Mapping[str, Any], tokenizer: Any) -> Any:
        """Load the model that `save` wrote to a folder."""
        from wxb.tasks.classification.recurrent import model

        size = {"vocab_size": len(tokenizer), "classes": len(settings["labels"])}
        return model.Recurrent.from_pretrained(folder, **size, **settings["shape"])

    def own_settings(self, experiment: Any) -> dict[str, Any]:
        """The sizes of the network."""
        return {"shape": experiment.model.model_dump()}


class Method(predictor.Method):
    """A bidirectional LSTM over the vocabulary of a backbone."""

    experiment: Recurrent
    Predictor = RecurrentClassifier

    def build(self, backbone: Path) -> Any:
        """An LSTM with random weights; only the backbone's vocabulary is used."""
        from wxb.tasks.classification.recurrent import model

        shape = self.experiment.model.model_dump()
        return model.Recurrent(len(self.tokenizer), len(self.labels), **shape)
