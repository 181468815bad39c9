"""The blocks of `corpora` and `experiments` for translation."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, PositiveInt, model_validator

from wxb.core.params import corpora, experiments
from wxb.core.params.section import Fraction, Section


def _check_script(name: str) -> str:
    import regex

    try:
        regex.compile(rf"\p{{Script={name}}}")
    except regex.error:
        raise ValueError(f"Unicode has no script {name!r}; use Han, Latin, ...") from None
    return name


Script = Annotated[str, AfterValidator(_check_script)]


class Fields(corpora.Fields):
    """The names of a corpus's fields; `input` and `target` set the direction."""

    target: str = "target"


class Pairs(Section):
    """Conditions that a pair must meet; others are rejected.

    `scripts` are those of source and target: a text with letters must have one of its script.
    `length_ratio` is the largest ratio of the two lengths in characters.
    """

    scripts: Annotated[list[Script], Field(min_length=2, max_length=2)] | None = None
    length_ratio: Annotated[float, Field(gt=1)] = 10.0


class Corpus(corpora.Corpus):
    """Sources with their translations."""

    formats = ("parallel", "columns")  # pairs of files, tab-separated lines
    format_hint: ClassVar[str] = (
        "; or set `columns` to read tab-separated lines, `parallel` to read pairs of files"
    )

    fields: Fields = Fields()
    columns: Annotated[list[str], Field(min_length=2)] | None = None
    # Two suffixes: a file of each has the translations of the other, line by line.
    parallel: Annotated[list[str], Field(min_length=2, max_length=2)] | None = None
    pairs: Pairs = Pairs()

    def reads(self, file: Path) -> bool:
        """Whether to read a file: with `parallel`, only those with one of its suffixes."""
        return self.parallel is None or file.suffix in [f".{suffix}" for suffix in self.parallel]

    @model_validator(mode="after")
    def _check_split_and_columns(self) -> Self:
        if self.split.by:
            raise ValueError("`split.by` is for other tasks; pairs that share a text stay together")
        key, names = self.format_key, self.parallel or self.columns
        missing = {self.fields.input, self.fields.target} - {*(names or ())}
        if names and missing:
            raise ValueError(
                f"`{key}` names {', '.join(names)}; expected the fields of the pair among"
                f" them: {', '.join(sorted(missing))}"
            )
        return self


class Recurrent(Section):
    """An LSTM encoder and decoder, with Bahdanau's attention or only the encoder's last state.

    With `teacher_forcing_decay`, training feeds the labels less and less often, by the inverse
    sigmoid of `wxb.models.seq2seq.teacher_forcing`; without it, always.
    """

    kind: Literal["recurrent"]
    attention: bool
    embedding_size: PositiveInt
    hidden_size: PositiveInt
    dropout: Fraction = 0.0
    teacher_forcing_decay: Annotated[float, Field(ge=1)] | None = None


class Transformer(Section):
    """The Transformer; its output layer shares the weights of the target embedding."""

    multiples: ClassVar = {"width": "heads"}

    kind: Literal["transformer"]
    width: Annotated[int, Field(ge=2, multiple_of=2)]
    heads: PositiveInt
    layers: PositiveInt
    feed_forward: PositiveInt
    dropout: Fraction = 0.0
    norm_first: bool = True
    label_smoothing: Fraction = 0.0


class Decoder(Section):
    """A GPT-2 that continues after the source, with the names of Hugging Face's configuration."""

    multiples: ClassVar = {"n_embd": "n_head"}

    kind: Literal["gpt2"]
    n_embd: PositiveInt
    n_layer: PositiveInt
    n_head: PositiveInt
    dropout: Fraction = 0.0
    label_smoothing: Fraction = 0.0


class Prediction(experiments.Prediction):
    """The beam search of translations.

    The score of a translation is log probability / length in tokens ** `length_penalty`. `maps` is
    the number of sentences whose attention the page shows.
    """

    only_page: ClassVar[Mapping[str, Any]] = {"maps": 0}

    batch_size: PositiveInt = 64
    beam: PositiveInt = 4
    length_penalty: Annotated[float, Field(ge=0)] = 1.0
    maps: Annotated[int, Field(ge=0)] = 0


class Experiment(experiments.Network, experiments.Untuned):
    """An experiment in translation, trained from random weights."""

    model: Annotated[Recurrent | Transformer | Decoder, Field(discriminator="kind")]
    prediction: Prediction = Prediction()

    def checkpoint_faults(self, config: Any, generation: Mapping[str, Any]) -> Iterable[str]:
        """An encoder-decoder is a fault: its weights would not be used."""
        if config.is_encoder_decoder:
            yield (
                f"method: found {self.method!r}, which trains a new network, and the weights of"
                f" {config.model_type} in backbone {self.backbone!r}; expected a tokenizer only:"
                " set `tokenizer: {kind: byte-level-bpe, ...}` instead of `checkpoint`"
            )

    @property
    def traits(self) -> list[str]:
        """The architecture, which the model's settings choose."""
        if isinstance(self.model, Recurrent):
            return ["LSTM with attention" if self.model.attention else "LSTM"]
        return ["Transformer" if isinstance(self.model, Transformer) else "GPT-2"]


class Baseline(experiments.Baseline):
    """Translations without training."""

    model: experiments.Rule[Literal["nearest"]]


METHODS = {"seq2seq": Experiment, "baseline": Baseline}
