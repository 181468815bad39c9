"""The blocks of `corpora` for speech, and the settings that its methods share."""

from pathlib import Path
from typing import Annotated

from pydantic import Field, NonNegativeFloat, PositiveInt

from wxb.core.params import corpora, experiments
from wxb.core.params.section import PositiveFloat, Section

POSITIONS = 50  # of Whisper's encoder, per second
TABLES = ("", ".csv", ".tsv", ".txt", ".list")  # suffixes of tables without a header
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

    formats = ("columns", "manifest")
    limit_key = "audio.max_seconds"

    fields: Fields = Fields()
    generate: Generate | None = None
    columns: Annotated[list[str], Field(min_length=2)] | None = None  # of tables without a header
    manifest: str | None = None
    audio: Audio = Audio()
    normalization: Normalization = Normalization()

    def reads(self, file: Path) -> bool:
        """Whether a file is the `manifest`, or, without one, may be a table without a header."""
        return file.name == self.manifest if self.manifest else file.suffix.lower() in TABLES


class Spectrograms(Section):
    """The size of a model's input."""

    window: PositiveInt  # seconds, the longest recording that a model reads at once
    mel_bands: PositiveInt = 80


class SpecAugment(Section):
    """Spans of bands and of frames that are masked in training (Park et al. 2019)."""

    masks: PositiveInt = 2  # of bands, and as many of frames
    bands: Annotated[int, Field(ge=0)] = 8  # maximum width of a mask
    frames: Annotated[int, Field(ge=0)] = 16  # maximum width of a mask; 10 ms each


class Prediction(experiments.Prediction):
    """How recordings are transcribed; those longer than a window are split into several."""

    pause: Annotated[float, Field(ge=0.2)] = 0.2  # seconds of a pause that separates windows
