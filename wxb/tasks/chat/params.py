"""The blocks of `corpora` and `experiments` that are for chat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, PositiveInt

from wxb.core.params import corpora, experiments
from wxb.core.params.section import OneOf, Section
from wxb.core.params.training import Training

Prompt = Literal["zero-shot", "few-shot", "instruction", "system"]


class Fields(corpora.Fields):
    """The names that a corpus gives to its fields.

    A record is `messages`, or an `instruction` with an optional `system` turn before it, `input`
    below it and the `output`; or a `text` that is no conversation, which only pretraining reads.
    """

    instruction: str = "instruction"
    output: str = "output"
    system: str | None = "system"
    messages: str = "messages"
    text: str | None = "text"
    kind: str | None = "kind"  # of question, by which results are resampled
    format: str | None = "format"  # that the answer has to keep; see wxb/tasks/chat/metrics


class Corpus(corpora.Corpus):
    """Conversations that end with an answer."""

    task: Literal["chat"]
    fields: Fields = Fields()


class Encoding(experiments.Encoding):
    """How a conversation is written, how much of it is read, and which of its tokens are learnt."""

    template: Literal["roles", "plain"] = "roles"
    loss: Literal["assistant", "all"] = "assistant"


class Prediction(experiments.Prediction):
    """How a model is asked, and how long its replies may be.

    `grid` are further ways of asking, whose replies are told on the page.
    """

    only_page: ClassVar[Mapping[str, Any]] = {"grid": []}

    batch_size: PositiveInt = 32
    max_new_tokens: PositiveInt = 128
    prompt: Prompt = "zero-shot"
    grid: list[Prompt] = Field(default=[])
    shots: PositiveInt = 4  # of few-shot: questions of validation with their answers
    instruction: str = "Answer the question. Write the answer only."  # before the question
    system: str = "You are a helpful assistant. Answer briefly."


class Sft(experiments.Experiment):
    """Supervised fine-tuning of a decoder on conversations."""

    task: Literal["chat"]
    method: Literal["sft"]
    encoding: Encoding
    model: Section
    training: Training
    prediction: Prediction

    @property
    def traits(self) -> list[str]:
        """What sets it apart from one that learns from the assistant's tokens."""
        everything = ["loss on all tokens"] if self.encoding.loss == "all" else []
        asked = [self.prediction.prompt] if self.prediction.prompt != "zero-shot" else []
        return [*everything, *asked]


METHODS = {"sft": Sft}
AnyExperiment = Annotated[experiments.Experiment, OneOf("method", lambda: METHODS)]
