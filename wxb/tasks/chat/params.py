"""The blocks of params.yaml for chat: corpora and experiments."""

from typing import Annotated, Literal

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


class Encoding(experiments.Encoding):
    """The template and maximum length of conversations, and the tokens with loss.

    `template` is by default the checkpoint's `own`, or `roles` if it has none.
    """

    template: Literal["roles", "plain", "own"] | None = None
    loss: Literal["assistant", "all"] = "assistant"


class Prediction(experiments.Prediction):
    """The maximum length of replies, and the examples before a question."""

    max_new_tokens: PositiveInt = 128
    shots: Annotated[int, Field(ge=0)] = 0  # validation questions with answers in the prompt


class Sft(experiments.Network):
    """Supervised fine-tuning of a decoder on conversations."""

    weights = "decoder"

    encoding: Encoding
    prediction: Prediction = Prediction()

    @property
    def required_lengths(self) -> dict[str, int]:
        """Tokens by setting: of a conversation, and of a reply with one token of its prompt."""
        longest = self.prediction.max_new_tokens + 1
        return {**super().required_lengths, "prediction.max_new_tokens": longest}

    @property
    def traits(self) -> list[str]:
        """Loss on all tokens and few-shot examples, if so, for tables."""
        loss = ["loss on all tokens"] if self.encoding.loss == "all" else []
        return [*loss, *(["few-shot"] if self.prediction.shots else [])]


class Baseline(experiments.Baseline):
    """Replies without training."""

    model: experiments.Rule[Literal["nearest"]]


METHODS: dict[str, type[experiments.Experiment]] = {"sft": Sft, "baseline": Baseline}
