"""The blocks of `corpora` for named entity recognition, and the settings that its methods share."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from wxb.core.params import corpora, experiments
from wxb.core.params.section import Fraction, Label, Section

# What offsets count, and from which end: characters (code points) up to, not including, the end.
Offsets = Literal["characters", "crlf-as-one", "utf-16", "utf-8", "end-included"]


class Fields(corpora.Fields):
    """The names of a corpus's fields, and of the keys of its spans."""

    spans: str = "spans"
    start: str = "start"
    end: str = "end"
    type: str = "type"
    value: str | None = None


class Conll(Section):
    """How column files, with one token per line, are read.

    `sentence` is the column of a CSV table with the sentence of each token, or only of its first.
    """

    token: int = 0
    tag: int = -1
    sentence: int | None = None
    join: Literal[" ", ""] = " "
    characters: bool = False
    unit: Literal["sentence", "document"] = "sentence"


class Corpus(corpora.Corpus):
    """Texts with typed spans of characters."""

    formats = ("conll",)  # column files
    format_hint: ClassVar[str] = "; or set `conll` to read column files"

    fields: Fields = Fields()
    conll: Conll | None = None
    offsets: Offsets = "characters"
    repair: Literal["by-value"] | None = None
    labels: dict[str, Label | None] = Field(default={})

    def advice(self, reason: str) -> str:
        """As the base class; also advises on offsets if spans have a value, and on overlaps."""
        wrong_offsets = reason in ("value differs", "offsets out of range", "reversed offsets")
        if wrong_offsets and self.fields.value and self.repair is None:
            return "set `repair: by-value` in the corpus, which finds each span by its value"
        if reason in ("nested spans", "overlapping spans"):
            return "keep one of overlapping spans, or drop a type: `labels: {TYPE: null}`"
        return super().advice(reason)

    @model_validator(mode="after")
    def _check_conll_and_repair(self) -> Self:
        """Reject `conll` with fields, languages or `by`, and `repair` without `fields.value`."""
        by_fields = self.split.by or self.split.held_out_fields
        if self.conll and (self.fields != Fields() or by_fields or self.languages):
            raise ValueError(
                "column files (`conll`) have only tokens and tags: remove `fields`, `languages` and"
                " each `by` of `split`"
            )
        if self.repair and self.fields.value is None:
            raise ValueError("`repair: by-value` needs `fields.value`, the text of a span")
        return self


class Head(Section):
    """The tagging head: one projection shared by the BIO, start and end classifiers."""

    projection: PositiveInt
    dropout: Fraction = 0.1


class WordFeatures(Section):
    """An embedding table of word features; it helps if there are few training texts."""

    rows: Annotated[int, Field(ge=2)]
    width: PositiveInt
    window: Annotated[int, Field(ge=0)]
    dropout: Fraction = 0.0


class TaggingModel(Section):
    """The head of a tagger, and the implementation and direction of its backbone."""

    implementation: Literal["transformers", "native"] = "transformers"
    bidirectional: bool = False
    word_features: WordFeatures | None = None
    head: Head


class Encoding(experiments.Encoding):
    """The windows in which a model reads texts."""

    stride: Annotated[int, Field(ge=0)]

    @model_validator(mode="after")
    def _stride_is_half_at_most(self) -> Self:
        if self.stride > self.max_length // 2:
            raise ValueError(
                f"stride must be at most half of max_length {self.max_length}; found {self.stride}"
            )
        return self


class Experiment(experiments.Network):
    """An experiment of named entity recognition."""

    encoding: Encoding
