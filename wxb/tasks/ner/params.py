"""The blocks of `corpora` and `experiments` that are for named entity recognition."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, PositiveInt, model_validator

from wxb.core.params import corpora, experiments
from wxb.core.params.section import Fraction, OneOf, Section
from wxb.core.params.training import Training


class Fields(corpora.Fields):
    """The names that a corpus gives to its fields, those of spans among them."""

    spans: str = "spans"
    start: str = "start"
    end: str = "end"
    type: str = "type"
    value: str | None = None


class Conll(Section):
    """How the columns of a file with one token a line make records."""

    token: int = 0
    tag: int = -1
    join: Literal[" ", ""] = " "
    characters: bool = False
    unit: Literal["sentence", "document"] = "sentence"

    @model_validator(mode="after")
    def _two_columns(self) -> Conll:
        if self.token == self.tag:
            raise ValueError(f"token and tag are both in column {self.token}")
        return self


class Augment(Section):
    """Copies of every labelled training record, with other mentions of the same types."""

    copies: PositiveInt
    share: Annotated[float, Field(gt=0, le=1)]


class Corpus(corpora.Corpus):
    """Texts with typed spans of characters."""

    other_files: ClassVar[str] = "; or set `conll` to read column files"

    task: Literal["ner"]
    fields: Fields = Fields()
    conll: Conll | None = None
    repair: Literal["by-value"] | None = None
    labels: dict[str, str | None] = Field(default={})
    augment: Augment | None = None

    @property
    def read_by(self) -> str:
        """`conll` for column files, else `fields`."""
        return "conll" if self.conll else "fields"

    def advice(self, reason: str) -> str:
        """`repair: by-value` where offsets are wrong, and values are there to find spans by."""
        shifted = reason in ("value differs", "offsets out of range", "reversed offsets")
        if shifted and self.fields.value and self.repair is None:
            return "set `repair: by-value` in the corpus, which finds each span by its value"
        return super().advice(reason)

    @model_validator(mode="after")
    def _columns_have_no_names(self) -> Corpus:
        by_fields = self.split.by or self.split.held_out
        if self.conll and (self.fields != Fields() or by_fields or self.languages):
            raise ValueError(
                "column files (`conll`) hold tokens and tags alone: leave `fields`, `languages`"
                " and each `by` of `split` out"
            )
        return self

    @model_validator(mode="after")
    def _repair_by_something(self) -> Corpus:
        if self.repair and self.fields.value is None:
            raise ValueError("`repair: by-value` needs `fields.value`, the text of a span")
        return self


class Head(Section):
    """The tagging head: one projection shared by the BIO, start and end classifiers."""

    projection: PositiveInt
    dropout: Fraction = 0.1


class WordFeatures(Section):
    """A table of embeddings for the letters of words, which helps where training texts are few."""

    rows: Annotated[int, Field(ge=2)]
    width: PositiveInt
    window: Annotated[int, Field(ge=0)]
    dropout: Fraction = 0.0


class Encoding(experiments.Encoding):
    """How texts are cut into windows that a model reads."""

    stride: Annotated[int, Field(ge=0)]

    @model_validator(mode="after")
    def _neighbours_share_half_at_most(self) -> Encoding:
        if self.stride > self.max_length // 2:
            raise ValueError(
                f"windows of max_length {self.max_length} share at most half of it; found stride"
                f" {self.stride}"
            )
        return self


class TaggingModel(Section):
    """What tags the tokens of a backbone, and whose architecture it is."""

    implementation: Literal["transformers", "native"] = "transformers"
    bidirectional: bool = False
    word_features: WordFeatures | None = None
    head: Head


class Experiment(experiments.Experiment):
    """What finds entities."""

    task: Literal["ner"]
    encoding: Encoding
    training: Training


class Tagging(Experiment):
    """Entities by tagging tokens."""

    method: Literal["tagging"]
    model: TaggingModel
    prediction: experiments.Prediction

    @property
    def traits(self) -> list[str]:
        """Which way the model looks, and what it is told besides."""
        told = {
            "bidirectional": self.model.bidirectional,
            "word features": self.model.word_features,
        }
        return [trait for trait, there in told.items() if there]

    @model_validator(mode="after")
    def _native_in_full(self) -> Tagging:
        if self.model.implementation == "native" and (
            self.model.bidirectional or self.tuning.lora or self.tuning.gradient_checkpointing
        ):
            raise ValueError(
                "model.implementation native trains all of an architecture as it is: without"
                " `model.bidirectional`, `tuning.lora` and `tuning.gradient_checkpointing`"
            )
        return self


class GenerationEncoding(Encoding):
    """How texts are cut, and answers written."""

    special_tokens: bool = False


class GenerationPrediction(experiments.Prediction):
    """How answers are generated."""

    batch_size: PositiveInt = 64


class Generation(Experiment):
    """Entities by writing answers."""

    slow: ClassVar[bool] = True

    method: Literal["generation"]
    encoding: GenerationEncoding
    model: Section
    prediction: GenerationPrediction


METHODS = {"tagging": Tagging, "generation": Generation}
AnyExperiment = Annotated[Experiment, OneOf("method", lambda: METHODS)]
