"""The blocks of params.yaml for chat: corpora and experiments."""

from __future__ import annotations

from typing import Literal

from pydantic import PositiveInt

from wxb.core.params import corpora, experiments
from wxb.core.params.section import Section
from wxb.core.params.training import Training

Prompt = Literal["zero-shot", "few-shot", "instruction", "system"]


class Fields(corpora.Fields):
    """The names of a corpus's fields.

    A record has `messages`, or `instruction` and `output` with optional `system` and `input`, or
    `text`, which is used for pretraining only.
    """

    instruction: str = "instruction"
    output: str = "output"
    system: str | None = "system"
    messages: str = "messages"
    text: str | None = "text"
    kind: str | None = "kind"  # of question: the group for resampling
    format: str | None = "format"  # of the answer, see record/checking.py


class Corpus(corpora.Corpus):
    """A corpus of conversations that end with an answer."""

    fields: Fields = Fields()


class Encoding(experiments.Encoding):
    """The template and maximum length of conversations, and the tokens with loss."""

    template: Literal["roles", "plain"] = "roles"
    loss: Literal["assistant", "all"] = "assistant"


class Prediction(experiments.Prediction):
    """The prompt and the maximum length of replies."""

    batch_size: PositiveInt = 32
    max_new_tokens: PositiveInt = 128
    prompt: Prompt = "zero-shot"
    shots: PositiveInt = 4  # validation questions with answers in a few-shot prompt
    instruction: str = "Answer the question. Write the answer only."  # before the question
    system: str = "You are a helpful assistant. Answer briefly."


class Sft(experiments.Experiment):
    """Supervised fine-tuning of a decoder on conversations."""

    encoding: Encoding
    model: Section
    training: Training
    prediction: Prediction

    @property
    def traits(self) -> list[str]:
        """Its differences from the defaults of loss and prompt, for tables."""
        loss = ["loss on all tokens"] if self.encoding.loss == "all" else []
        prompt = [self.prediction.prompt] if self.prediction.prompt != "zero-shot" else []
        return [*loss, *prompt]


class Baseline(experiments.Baseline):
    """Replies without training."""

    model: experiments.Rule[Literal["nearest"]]


METHODS = {"sft": Sft, "baseline": Baseline}
