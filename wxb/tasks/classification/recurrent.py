"""Text classification by a bidirectional LSTM, which never reads padding."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wxb.tasks.classification.models.predictor import LogitClassifier
from wxb.tasks.classification.params import Recurrent
from wxb.tasks.methods import Network


class RecurrentClassifier(LogitClassifier):
    """A trained bidirectional LSTM."""

    @classmethod
    def load_model(cls, folder: Path, settings: Mapping[str, Any], tokenizer: Any) -> Any:
        """Load the model that `save` wrote to a folder."""
        from wxb.tasks.classification.models import recurrent

        size = {"vocab_size": len(tokenizer), "classes": len(settings["labels"])}
        return recurrent.Recurrent.from_pretrained(folder, **size, **settings["shape"])


class RecurrentMethod(Network):
    """A bidirectional LSTM over the vocabulary of a backbone."""

    experiment: Recurrent
    PREDICTOR = RecurrentClassifier

    def model(self, backbone: Path) -> Any:
        """An LSTM with random weights; only the backbone's vocabulary is used."""
        from wxb.tasks.classification.models import recurrent

        shape = self.experiment.model.model_dump()
        return recurrent.Recurrent(len(self.tokenizer), len(self.labels), **shape)

    def shape(self, targets: Path) -> dict[str, Any]:
        """The sizes of the network."""
        return {"shape": self.experiment.model.model_dump()}


METHOD = RecurrentMethod
