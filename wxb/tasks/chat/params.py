"""The blocks of `corpora` for chat, and the settings that its methods share."""

from typing import Annotated

from pydantic import Field, PositiveInt

from wxb.core.params import corpora, experiments


class Fields(corpora.Fields):
    """The names of a corpus's fields.

    A record has `messages`, or `instruction` and `output` with optional `input` and `history`, a
    list of earlier questions with answers, or `text`, which is used for pretraining only. `system`
    comes before all.
    """

    instruction: str = "instruction"
    output: str = "output"
    system: str | None = "system"
    history: str | None = "history"
    messages: str = "messages"
    text: str | None = "text"
    kind: str | None = "kind"  # of question: the group for resampling
    format: str | None = "format"  # of the answer, see record/checking.py


class Corpus(corpora.Corpus):
    """A corpus of conversations that end with an answer."""

    fields: Fields = Fields()


class Prediction(experiments.Prediction):
    """The maximum length of replies, and the examples before a question."""

    max_new_tokens: PositiveInt = 128
    shots: Annotated[int, Field(ge=0)] = 0  # validation questions with answers in the prompt
