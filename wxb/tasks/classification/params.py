"""The blocks of `corpora` for text classification, and the settings that its methods share."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, PositiveInt, model_validator

from wxb.core.params import corpora, experiments
from wxb.core.params.section import Fraction, Label, PositiveFloat, Section


class Fields(corpora.Fields):
    """The names of a corpus's fields; `label` is null if `classes` maps files to classes."""

    label: str | None = "label"


class Corpus(corpora.Corpus):
    """Texts with one class each, named by a field or by the file."""

    formats = ("format", "columns")  # texts without fields, tables without a header

    fields: Fields = Fields()
    columns: Annotated[list[str], Field(min_length=2)] | None = None  # of tables without a header
    format: Literal["fasttext", "files"] | None = None  # lines with __label__, or a text per file
    # By pattern of file names, or by name of folder if each file is a text; null: unlabelled.
    classes: dict[str, Label | None] = Field(default={})
    labels: dict[str, Label | None] = Field(default={})  # classes by raw label; null: reject it
    html: Literal["removed", "kept"] = "removed"

    def reads(self, file: Path) -> bool:
        """Whether to read a file: if each file is a text, only those in a folder of `classes`."""
        return self.format != "files" or file.parent.name in self.classes

    @property
    def has_text_per_file(self) -> bool:
        """Whether each file is one text."""
        return self.format == "files"

    @model_validator(mode="after")
    def _check_classes(self) -> Self:  # `label` or `classes`, not both; files need `classes`
        if (self.fields.label is None) != bool(self.classes):
            raise ValueError(
                "give either `fields.label`, or `classes` with `fields.label: null` if each file"
                " holds one class"
            )
        if self.format == "files" and not self.classes:
            raise ValueError("`format: files` needs `classes`, a class for each name of a folder")
        return self


class Encoding(experiments.Encoding):
    """How texts are truncated; `ends` keeps a quarter from the start, the rest from the end."""

    keep: Literal["start", "ends"] = "start"


class Regression(Section):
    """Logistic regression, with the names of scikit-learn."""

    C: Annotated[list[PositiveFloat], Field(min_length=1)]  # inverse strengths, to choose from
    folds: Annotated[int, Field(ge=2)] | None = None  # choose C by cross-validation, not validation
    class_weight: Literal["balanced"] | None = None
    max_iter: PositiveInt = 1000
    tol: PositiveFloat = 1e-6  # of the gradient: small enough that word order changes nothing


class TfidfModel(Section):
    """The features of a text."""

    ngrams: Annotated[int, Field(ge=1, le=4)] = 2  # the most words in an n-gram
    min_texts: PositiveInt = 2  # training texts with an n-gram, at least
    sublinear: bool = True  # 1 + log(count) instead of the count


class Words(TfidfModel):
    """The n-grams that a logistic regression reads in addition to pooled hidden states.

    These are multiplied by one of the factors `states`, chosen as C is; 0 leaves only n-grams.
    """

    states: list[Annotated[float, Field(ge=0)]] = Field(default=[1.0], min_length=1)


class EncoderModel(Section):
    """The pooling of hidden states into one vector, and the dropout of it.

    With `words`, a logistic regression also reads TF-IDF weights of n-grams.
    """

    pooling: Literal["cls", "mean"] = "mean"
    dropout: Fraction = 0.1
    words: Words | None = None


class Scratch(experiments.Network, experiments.Untuned):
    """A network over words, trained from scratch."""

    encoding: Encoding
