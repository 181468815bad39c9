"""Text classification by a bidirectional LSTM, which never reads padding."""

from typing import Any

from wxb.tasks.classification.models.predictor import ScratchMethod


def lstm(words: int, classes: int, **sizes: Any) -> Any:
    """A bidirectional LSTM classifier with random weights."""
    from wxb.models.lstm import LSTMClassifier

    return LSTMClassifier(words, classes, **sizes)


class RecurrentMethod(ScratchMethod):
    """A bidirectional LSTM over the vocabulary of a backbone."""

    NETWORK = staticmethod(lstm)
