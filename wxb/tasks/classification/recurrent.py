"""Text classification by a bidirectional LSTM, which never reads padding."""

from typing import Any

from pydantic import PositiveInt

from wxb.core.params.section import Fraction, Section
from wxb.tasks.classification.models.predictor import ScratchMethod
from wxb.tasks.classification.params import Scratch


class RecurrentModel(Section):
    """The sizes of a bidirectional LSTM."""

    embedding_size: PositiveInt = 128
    hidden_size: PositiveInt = 128
    num_layers: PositiveInt = 1
    dropout: Fraction = 0.0


class RecurrentExperiment(Scratch):
    """A bidirectional LSTM, trained from scratch."""

    model: RecurrentModel = RecurrentModel()


def lstm(words: int, classes: int, **sizes: Any) -> Any:
    """A bidirectional LSTM classifier with random weights."""
    from wxb.models.lstm import LSTMClassifier

    return LSTMClassifier(words, classes, **sizes)


class RecurrentMethod(ScratchMethod):
    """A bidirectional LSTM over the vocabulary of a backbone."""

    experiment: RecurrentExperiment
    NETWORK = staticmethod(lstm)
