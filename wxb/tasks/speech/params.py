"""The blocks of `corpora` and `experiments` that are for speech."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, NonNegativeFloat, PositiveInt, model_validator

from wxb.core.params import corpora, experiments
from wxb.core.params.section import Fraction, OneOf, PositiveFloat, Section
from wxb.core.params.training import Training

POSITIONS = 50  # of Whisper's encoder, a second


def _ordered(ends: tuple[float, float]) -> tuple[float, float]:
    if ends[0] > ends[1]:
        raise ValueError(f"found {ends[0]:g} to {ends[1]:g}; expected the least first")
    return ends


# Numbers that are drawn evenly from the least to the most.
Range = Annotated[tuple[float, float], AfterValidator(_ordered)]


class Fields(corpora.Fields):
    """The names that a manifest gives to its columns.

    Without a column for the path, the audio file is the one that has the record's id for a name.
    """

    input: str = "path"
    id: str | None = "ID"
    sentence: str = "sentence"
    speaker: str | None = "speaker"


class Spoken(corpora.Generate):
    """What eSpeak NG is asked to say, by which of its voices, and where.

    Corpora that take different parts of all possible sentences have none in common.
    """

    sentence_share: Range = (0, 1)
    voices: Annotated[list[str], Field(min_length=1)]
    speed: Range = (160, 200)  # words a minute
    pitch: Range = (30, 70)  # of 0 to 99
    snr: Range = (20, 40)  # dB between speech and noise
    echo: Range = (0, 0.2)  # seconds in which sound falls by 60 dB in the room


class Audio(Section):
    """How recordings are cut, and which are refused; times in seconds."""

    min_seconds: NonNegativeFloat = 0.1
    max_seconds: PositiveFloat = 30.0
    top_db: PositiveFloat = 40.0  # silence at the ends is so far below the loudest moment


class Normalization(Section):
    """What does not count as an error of recognition."""

    width: bool = True  # full and half width, and other forms of one character (NFKC)
    case: bool = True
    punctuation: bool = True
    simplified: bool = False  # traditional characters are compared as simplified ones

    @property
    def rules(self) -> str:
        """The names of what is set aside, in the order of the work."""
        return " ".join(name for name, on in self.model_dump().items() if on)


class Corpus(corpora.Corpus):
    """Recordings of one utterance each, and what was said.

    `manifest` are the files that say so, where not all tables of the folder do: the first has a row
    for each recording, and further ones add columns to the rows of the same id.
    """

    task: Literal["speech"]
    fields: Fields = Fields()
    generate: Spoken | None = None
    manifest: Annotated[list[str], Field(min_length=1)] | None = None
    audio: Audio = Audio()
    normalization: Normalization = Normalization()

    @property
    def read_by(self) -> str:
        """`manifest` where it is given, else `fields`."""
        return "manifest" if self.manifest else "fields"


class Encoding(experiments.Encoding):
    """How much of a recording and of its transcript is read."""

    max_length: PositiveInt  # tokens of a transcript, special ones included
    window: PositiveInt  # seconds of a recording
    mel_bands: PositiveInt = 80
    speeds: list[PositiveFloat] = Field(default=[])  # of further copies of training recordings
    language: str | None = None  # the token of a multilingual checkpoint, such as zh


class Shape(Section):
    """A Whisper with random weights; names as in Hugging Face's `WhisperConfig`."""

    d_model: PositiveInt
    encoder_layers: PositiveInt
    decoder_layers: PositiveInt
    attention_heads: PositiveInt
    ffn_dim: PositiveInt
    dropout: Fraction = 0.0

    @model_validator(mode="after")
    def _heads_divide(self) -> Shape:
        if self.d_model % self.attention_heads:
            raise ValueError(
                f"d_model {self.d_model} is not a multiple of attention_heads"
                f" {self.attention_heads}"
            )
        return self


class SpecAugment(Section):
    """Stretches of bands and of frames that are hidden in training (Park et al. 2019)."""

    masks: PositiveInt = 2  # of either kind
    bands: Annotated[int, Field(ge=0)] = 8  # at most, of a mask
    frames: Annotated[int, Field(ge=0)] = 16  # at most, of a mask; 10 ms each


class Seq2SeqModel(Section):
    """Whose code the Whisper is, what it is made like, and what it has to do without."""

    implementation: Literal["transformers", "native"] = "transformers"
    shape: Shape | None = None  # null: the backbone's own weights
    spec_augment: SpecAugment | None = None
    ctc_weight: Fraction = 0.0  # of CTC's loss: what is heard is told where (Kim et al. 2017)


class Prediction(experiments.Prediction):
    """How recordings are transcribed; longer ones than a window in several, in seconds."""

    batch_size: PositiveInt = 32
    overlap: PositiveFloat = 0.5  # of neighbouring windows, where no pause is to be found
    pause: PositiveFloat = 0.2  # in which nobody speaks, parts two windows


class Seq2Seq(experiments.Experiment):
    """Transcripts by an encoder that hears and a decoder that writes."""

    task: Literal["speech"]
    method: Literal["seq2seq"]
    encoding: Encoding
    model: Seq2SeqModel
    training: Training
    prediction: Prediction

    @property
    def traits(self) -> list[str]:
        """What it hears in training besides the recordings."""
        told = {"SpecAugment": self.model.spec_augment, "CTC": self.model.ctc_weight}
        return [trait for trait, there in told.items() if there]

    @model_validator(mode="after")
    def _native_in_full(self) -> Seq2Seq:
        if self.model.implementation == "native" and (
            self.tuning.lora or self.tuning.gradient_checkpointing
        ):
            raise ValueError(
                "model.implementation native trains all of an architecture as it is: without"
                " `tuning.lora` and `tuning.gradient_checkpointing`"
            )
        return self

    @model_validator(mode="after")
    def _windows_move_on(self) -> Seq2Seq:
        if self.prediction.overlap > self.encoding.window / 2:
            raise ValueError(
                f"neighbouring windows of {self.encoding.window} s share at most half of it; found"
                f" prediction.overlap {self.prediction.overlap:g}"
            )
        return self


METHODS = {"seq2seq": Seq2Seq}
AnyExperiment = Annotated[experiments.Experiment, OneOf("method", lambda: METHODS)]
