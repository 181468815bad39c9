"""The blocks of params.yaml for speech: corpora and experiments."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, NonNegativeFloat, PositiveInt

from wxb.core.params import corpora, experiments
from wxb.core.params.section import Fraction, PositiveFloat, Section

POSITIONS = 50  # of Whisper's encoder, per second
ENGLISH = 51864  # tokens of the English Whispers; the others have more


# The bounds of a uniform distribution, the lower one first.
Range = Annotated[tuple[float, float], Field(strict=False)]


class Fields(corpora.Fields):
    """The names of a manifest's columns; a row without a path uses the file named by its id."""

    input: str = "path"
    id: str | None = "ID"
    sentence: str = "sentence"
    speaker: str | None = "speaker"
    # Seconds of a recording that a row is about, from `start` to `end` or for `duration`.
    start: str | None = None
    end: str | None = None
    duration: str | None = None


class Generate(corpora.Generate):
    """Sentences spoken by random voices of eSpeak NG in simulated rooms.

    Corpora with disjoint ranges of `sentence_share`, from 0 to 1, share no sentence and no voice.
    """

    sentence_share: Range = (0, 1)
    voices: PositiveInt
    formants: Range = (85, 120)  # % of eSpeak NG's frequencies
    pitch: Range = (70, 240)  # lowest of a voice, in Hz
    speed: Range = (240, 290)  # words per minute
    snr: Range = (20, 40)  # signal-to-noise ratio in dB
    echo: Range = (0, 0.2)  # reverberation time in seconds, for a decay by 60 dB


class Audio(Section):
    """How recordings are trimmed, and which are rejected."""

    min_seconds: NonNegativeFloat = 0.1
    max_seconds: PositiveFloat = 30.0
    top_db: PositiveFloat = 40.0  # silence is this far below the loudest moment


class Normalization(Section):
    """Differences between transcripts that are not errors."""

    width: bool = True  # Unicode NFKC: full and half width, and other compatible forms
    case: bool = True
    punctuation: bool = True
    simplified: bool = False  # convert traditional characters

    @property
    def rules(self) -> str:
        """The names of the enabled rules, in the order in which they are applied."""
        return " ".join(name for name, on in self.model_dump().items() if on)


class Corpus(corpora.Corpus):
    """Recordings of one utterance each, with transcripts in all tables, or in `manifest`."""

    formats = ("manifest",)
    limit_key = "audio.max_seconds"

    fields: Fields = Fields()
    generate: Generate | None = None
    columns: Annotated[list[str], Field(min_length=2)] | None = None  # of tables without a header
    manifest: str | None = None
    audio: Audio = Audio()
    normalization: Normalization = Normalization()


class Spectrograms(Section):
    """The size of a model's input."""

    window: PositiveInt  # seconds, the longest recording that a model reads at once
    mel_bands: PositiveInt = 80


class Encoding(experiments.Encoding, Spectrograms):
    """How recordings and transcripts are encoded."""

    max_length: PositiveInt  # tokens of a transcript, including special ones
    speeds: list[PositiveFloat] = Field(default=[])  # of additional copies of training recordings
    language: str | None = None  # of a multilingual checkpoint, such as zh


class Shape(Section):
    """The size of a Whisper with random weights; names as in Hugging Face's `WhisperConfig`."""

    multiples: ClassVar = {"d_model": "attention_heads"}

    d_model: PositiveInt
    encoder_layers: PositiveInt
    decoder_layers: PositiveInt
    attention_heads: PositiveInt
    ffn_dim: PositiveInt
    dropout: Fraction = 0.0


class SpecAugment(Section):
    """Spans of bands and of frames that are masked in training (Park et al. 2019)."""

    masks: PositiveInt = 2  # of bands, and as many of frames
    bands: Annotated[int, Field(ge=0)] = 8  # maximum width of a mask
    frames: Annotated[int, Field(ge=0)] = 16  # maximum width of a mask; 10 ms each


class Seq2SeqModel(Section):
    """The code and size of the Whisper, and its regularization."""

    implementation: Literal["transformers", "native"] = "transformers"
    shape: Shape | None = None  # null: the weights of the backbone
    spec_augment: SpecAugment | None = None
    ctc_weight: Fraction = 0.0  # share of a CTC loss on the encoder (Kim et al. 2017)


class Prediction(experiments.Prediction):
    """How recordings are transcribed; those longer than a window are split into several."""

    pause: PositiveFloat = 0.2  # seconds; a pause of this length always separates windows


class Seq2Seq(experiments.Network):
    """Transcription by a Whisper."""

    encoding: Encoding
    model: Seq2SeqModel = Seq2SeqModel()
    prediction: Prediction = Prediction()

    @property
    def weights(self) -> Any:  # type: ignore[override]
        """The kind of weights, "whisper", or None for a new model with random ones."""
        return None if self.model.shape else "whisper"

    @property
    def required_lengths(self) -> dict[str, int]:
        """The tokens that the decoder has to read: `encoding.max_length` plus the prompt."""
        prompt = 4 if self.encoding.language else 2
        return {"encoding.max_length": prompt + self.encoding.max_length}

    def checkpoint_faults(self, config: Any, generation: Mapping[str, Any]) -> Iterable[str]:
        """A longer window, other bands, or a language that is missing or is set in vain."""
        if not self.weights:
            return
        encoding, backbone = self.encoding, f"backbone {self.backbone!r}"
        longest, bands = config.max_source_positions / POSITIONS, config.num_mel_bins
        if (window := encoding.window) > longest:
            yield f"encoding.window: found {window}; expected at most {longest:g}, as in {backbone}"
        if (found := encoding.mel_bands) != bands:
            yield f"encoding.mel_bands: found {found}; expected {bands}, as in {backbone}"
        is_large = config.vocab_size > ENGLISH  # of checkpoints without generation settings
        has_languages = generation.get("is_multilingual", "lang_to_id" in generation or is_large)
        if has_languages != bool(encoding.language):
            expected = "the language of its transcripts, such as zh" if has_languages else "null"
            yield (
                f"encoding.language: found {encoding.language or 'null'}; expected {expected}, as"
                f" {backbone} is {'' if has_languages else 'not '}multilingual"
            )

    @property
    def traits(self) -> list[str]:
        """SpecAugment and CTC, if it trains with them, for tables."""
        traits = {"SpecAugment": self.model.spec_augment, "CTC": self.model.ctc_weight}
        return [trait for trait, setting in traits.items() if setting]


class Baseline(experiments.Baseline):
    """Transcripts without training."""

    encoding: Spectrograms
    model: experiments.Rule[Literal["nearest"]]
    prediction: Prediction = Prediction()


METHODS = {"seq2seq": Seq2Seq, "baseline": Baseline}
