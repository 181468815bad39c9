"""The blocks of `corpora` and `experiments` that are for translation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import regex
from pydantic import AfterValidator, Field, PositiveInt, model_validator

from wxb.core.params import corpora, experiments
from wxb.core.params.section import Fraction, OneOf, Section
from wxb.core.params.training import Training


def _is_script(name: str) -> str:
    try:
        regex.compile(rf"\p{{Script={name}}}")
    except regex.error:
        raise ValueError(f"Unicode has no script {name!r}; there are Han, Latin, ...") from None
    return name


Script = Annotated[str, AfterValidator(_is_script)]


class Fields(corpora.Fields):
    """The names that a corpus gives to its fields; `input` and `target` make the direction."""

    target: str = "target"


class Pairs(Section):
    """What makes two texts a pair: the others are rejected.

    `scripts` are those of source and target, whose letters each must have some of if it has
    letters at all; neither text may have more than `length_ratio` times the characters of the
    other.
    """

    scripts: Annotated[list[Script], Field(min_length=2, max_length=2)] | None = None
    length_ratio: Annotated[float, Field(gt=1)] = 10.0


class Corpus(corpora.Corpus):
    """Texts with their translations."""

    other_files: ClassVar[str] = "; or set `columns` to read tab-separated lines"

    task: Literal["translation"]
    fields: Fields = Fields()
    columns: Annotated[list[str], Field(min_length=2)] | None = None
    pairs: Pairs = Pairs()

    @property
    def read_by(self) -> str:
        """`columns` for tab-separated lines, else `fields`."""
        return "columns" if self.columns else "fields"

    @model_validator(mode="after")
    def _divided_by_what_pairs_share(self) -> Corpus:
        if self.split.by:
            raise ValueError("`split.by` is for other tasks: pairs are divided by what they share")
        return self

    @model_validator(mode="after")
    def _columns_hold_the_pair(self) -> Corpus:
        lacking = {self.fields.input, self.fields.target} - {*(self.columns or ())}
        if self.columns and lacking:
            raise ValueError(
                f"`columns` names {', '.join(self.columns)}; expected the fields of the pair among"
                f" them: {', '.join(sorted(lacking))}"
            )
        return self


class Recurrent(Section):
    """LSTM encoder and decoder, with Bahdanau's attention or by the encoder's last state alone.

    With `teacher_forcing_decay` the label is read ever less often while training, by the inverse
    sigmoid that `wxb.models.seq2seq.teacher_forcing` states; without, always.
    """

    kind: Literal["recurrent"]
    attention: bool
    embedding_size: PositiveInt
    hidden_size: PositiveInt
    dropout: Fraction = 0.0
    teacher_forcing_decay: Annotated[float, Field(ge=1)] | None = None


class Transformer(Section):
    """The Transformer, whose output layer is the target's embedding."""

    kind: Literal["transformer"]
    width: PositiveInt
    heads: PositiveInt
    layers: PositiveInt
    feed_forward: PositiveInt
    dropout: Fraction = 0.0
    norm_first: bool = True
    label_smoothing: Fraction = 0.0

    @model_validator(mode="after")
    def _divisible(self) -> Transformer:
        if self.width % 2 or self.width % self.heads:
            raise ValueError(
                f"width {self.width} must be even, and a multiple of {self.heads} heads"
            )
        return self


class Decoder(Section):
    """A GPT-2 that goes on after the source; names as in Hugging Face's configuration."""

    kind: Literal["gpt2"]
    n_embd: PositiveInt
    n_layer: PositiveInt
    n_head: PositiveInt
    dropout: Fraction = 0.0
    label_smoothing: Fraction = 0.0

    @model_validator(mode="after")
    def _divisible(self) -> Decoder:
        if self.n_embd % self.n_head:
            raise ValueError(f"n_embd {self.n_embd} must be a multiple of n_head {self.n_head}")
        return self


MODELS = {"recurrent": Recurrent, "transformer": Transformer, "gpt2": Decoder}
AnyModel = Annotated[Recurrent | Transformer | Decoder, OneOf("kind", lambda: MODELS)]


class Prediction(experiments.Prediction):
    """How translations are sought.

    The score of one is its log probability over its length in tokens to the power of
    `length_penalty`. `maps` is for so many sentences what their translations looked at.
    """

    only_page: ClassVar[Mapping[str, Any]] = {"maps": 0}

    batch_size: PositiveInt = 64
    beam: PositiveInt = 4
    length_penalty: Annotated[float, Field(ge=0)] = 1.0
    n_best: PositiveInt = 1
    maps: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="after")
    def _as_many_as_there_are(self) -> Prediction:
        if self.n_best > self.beam:
            raise ValueError(
                f"a beam of {self.beam} ends with no more than {self.beam} translations; found"
                f" n_best {self.n_best}"
            )
        return self


class Experiment(experiments.Experiment):
    """What translates, trained from random weights."""

    task: Literal["translation"]
    method: Literal["seq2seq"]
    encoding: experiments.Encoding
    model: AnyModel
    training: Training
    prediction: Prediction

    @model_validator(mode="after")
    def _all_of_it_learns(self) -> Experiment:
        if self.tuning != experiments.Tuning():
            raise ValueError(
                "tuning: a model from random weights learns as a whole; leave all of it out"
            )
        return self


AnyExperiment = Annotated[Experiment, OneOf("method", lambda: {"seq2seq": Experiment})]
