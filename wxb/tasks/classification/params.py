"""The blocks of `corpora` and `experiments` that are for classifying texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, PositiveInt, model_validator

from wxb.core.params import corpora, experiments
from wxb.core.params.experiments import Tuning
from wxb.core.params.section import Fraction, OneOf, PositiveFloat, Section
from wxb.core.params.training import Training


class Fields(corpora.Fields):
    """The names that a corpus gives to its fields; `label` is null where files tell the class."""

    label: str | None = "label"


class Corpus(corpora.Corpus):
    """Texts with one class each, by a field or by the file that they stand in."""

    task: Literal["classification"]
    fields: Fields = Fields()
    classes: dict[str, str] = Field(default={})  # by patterns of file names
    labels: dict[str, str | None] = Field(default={})  # other words for a class; null: left out
    html: Literal["removed", "kept"] = "removed"

    @model_validator(mode="after")
    def _label_from_one_place(self) -> Corpus:
        if (self.fields.label is None) != bool(self.classes):
            raise ValueError(
                "give either `fields.label`, or `classes` with `fields.label: null` where each file"
                " holds one class"
            )
        return self

    @model_validator(mode="after")
    def _words_of_their_own(self) -> Corpus:
        words = Counter(word.casefold() for word in self.labels)
        if twice := [word for word, count in words.items() if count > 1]:
            raise ValueError(f"`labels` has {twice[0]!r} twice, as capitals do not count")
        return self


class Source(Section):
    """Whether models read what tells the publisher of a text, such as a dateline."""

    giveaways: Literal["removed", "kept"] = "removed"


class Encoding(experiments.Encoding, Source):
    """How much of a text is read: its start, or a quarter from there and the rest from its end."""

    keep: Literal["start", "ends"] = "start"


class Prediction(experiments.Prediction):
    """How texts are classified; of the first `explained` it is told which words decide."""

    only_page: ClassVar[Mapping[str, Any]] = {"explained": 0}

    explained: Annotated[int, Field(ge=0)] = 40


class Experiment(experiments.Experiment):
    """What classifies texts."""

    task: Literal["classification"]
    prediction: Prediction


class EncoderModel(Section):
    """How the hidden states of a backbone become one vector."""

    pooling: Literal["cls", "mean"]
    dropout: Fraction = 0.1


class Encoder(Experiment):
    """Classes by a backbone, and one linear layer on what is pooled of it."""

    method: Literal["encoder"]
    encoding: Encoding
    model: EncoderModel
    training: Training

    @property
    def traits(self) -> list[str]:
        """How it pools."""
        return [f"{self.model.pooling} pooling"]


class Untuned(Experiment):
    """A model without a backbone, all of which learns."""

    @model_validator(mode="after")
    def _learns_in_full(self) -> Untuned:
        if self.tuning != Tuning():
            raise ValueError(f"method {self.method} has no backbone to tune: leave `tuning` empty")
        return self


class RecurrentModel(Section):
    """The shape of a network that reads words both ways."""

    embedding_size: PositiveInt = 128
    hidden_size: PositiveInt = 128
    num_layers: PositiveInt = 1
    dropout: Fraction = 0.0


class Recurrent(Untuned):
    """Classes by an LSTM in both directions."""

    method: Literal["recurrent"]
    encoding: Encoding
    model: RecurrentModel
    training: Training


class TfidfModel(Section):
    """What is counted of a text."""

    ngrams: Annotated[int, Field(ge=1, le=4)] = 2  # words in a row, at most
    min_texts: PositiveInt = 2  # training texts that an n-gram must stand in
    sublinear: bool = True  # 1 + log of a count in its place


class Regression(Section):
    """Logistic regression; names as in scikit-learn."""

    C: Annotated[list[PositiveFloat], Field(min_length=1)]  # inverse strengths; validation chooses
    class_weight: Literal["balanced"] | None = None
    max_iter: PositiveInt = 1000
    tol: PositiveFloat = 1e-6  # of the gradient: so small that the order of words changes nothing


class Tfidf(Untuned):
    """Classes by logistic regression over the weighted counts of words and n-grams."""

    method: Literal["tfidf"]
    encoding: Source
    model: TfidfModel
    training: Regression


METHODS = {"encoder": Encoder, "recurrent": Recurrent, "tfidf": Tfidf}
AnyExperiment = Annotated[Experiment, OneOf("method", lambda: METHODS)]
