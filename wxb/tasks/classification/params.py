"""The blocks of `corpora` and `experiments` for text classification."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, PositiveInt, Tag, model_validator

from wxb.core.params import corpora, experiments
from wxb.core.params.experiments import Tuning
from wxb.core.params.section import Fraction, Label, PositiveFloat, Section
from wxb.core.params.training import Training


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
    labels: dict[str, Label | None] = Field(default={})  # classes by raw label; null drops it
    html: Literal["removed", "kept"] = "removed"

    def reads(self, file: Path) -> bool:
        """Whether to read a file: if each file is a text, only from a folder with a class."""
        return self.format != "files" or file.parent.name in self.classes

    @property
    def has_text_per_file(self) -> bool:
        """Whether each file is one text."""
        return self.format == "files"

    @model_validator(mode="after")
    def _check_classes(self) -> Self:
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

    pooling: Literal["cls", "mean"]
    dropout: Fraction = 0.1
    words: Words | None = None


def _kind_of_training(block: Any) -> str:
    """The variant of `training` of an encoder: "regression" if it has C, else "steps"."""
    has_strengths = isinstance(block, Mapping) and "C" in block
    return "regression" if has_strengths or isinstance(block, Regression) else "steps"


class Encoder(experiments.Experiment):
    """A backbone with a linear layer on its pooled hidden states.

    Training in steps fine-tunes both; a logistic regression fits the layer alone.
    """

    weights = "hidden states"

    encoding: Encoding
    model: EncoderModel
    training: Annotated[
        Annotated[Training, Tag("steps")] | Annotated[Regression, Tag("regression")],
        Discriminator(_kind_of_training),
    ]

    @property
    def traits(self) -> list[str]:
        """The pooling, and "TF-IDF" and "logistic regression" if used."""
        regression = ["logistic regression"] if isinstance(self.training, Regression) else []
        words = ["TF-IDF"] if self.model.words else []
        return [f"{self.model.pooling} pooling", *words, *regression]

    @model_validator(mode="after")
    def _check_regression(self) -> Self:
        if isinstance(self.training, Regression) and (
            self.tuning != Tuning(frozen=True) or self.model.pooling != "mean"
        ):
            raise ValueError(
                "`training.C` fits a logistic regression to the mean hidden states of a frozen"
                " backbone; expected `tuning: {frozen: true}` and `model: {pooling: mean}`"
            )
        if self.model.words and not isinstance(self.training, Regression):
            raise ValueError(
                "`model.words` is read by a logistic regression; expected `training: {C: [...]}`"
            )
        return self


class PromptEncoding(Encoding, experiments.PromptEncoding):
    """How texts are truncated, and the prompt; a question without a chat template."""

    instruction: Annotated[str, Field(min_length=1)]


class Prompt(experiments.Prompted):
    """A decoder that answers an instruction with the name of a class."""

    encoding: PromptEncoding


class Scratch(experiments.Network, experiments.Untuned):
    """A network over words, trained from scratch."""

    encoding: Encoding


class RecurrentModel(Section):
    """The sizes of a bidirectional LSTM."""

    embedding_size: PositiveInt = 128
    hidden_size: PositiveInt = 128
    num_layers: PositiveInt = 1
    dropout: Fraction = 0.0


class Recurrent(Scratch):
    """A bidirectional LSTM, trained from scratch."""

    model: RecurrentModel = RecurrentModel()


class BagModel(Section):
    """The embeddings of words and pairs of words."""

    embedding_size: PositiveInt = 64
    pairs: PositiveInt = 65536  # embeddings for pairs, which are hashed
    dropout: Fraction = 0.0


class Bag(Scratch):
    """The mean embedding of words and pairs of words, trained from scratch."""

    model: BagModel = BagModel()


class Tfidf(experiments.Untuned):
    """Logistic regression on TF-IDF weights of n-grams."""

    model: TfidfModel = TfidfModel()
    training: Regression


class Baseline(experiments.Baseline):
    """A class without training."""

    model: experiments.Rule[Literal["majority", "nearest", "lexicon"]]


METHODS = {
    "encoder": Encoder,
    "prompt": Prompt,
    "recurrent": Recurrent,
    "bag": Bag,
    "tfidf": Tfidf,
    "baseline": Baseline,
}
