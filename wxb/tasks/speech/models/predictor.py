"""The base class of trained speech models: recordings in, transcripts out.

Long recordings are split at pauses into windows that a model reads at once.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray
from scipy.ndimage import minimum_filter1d, uniform_filter1d

from wxb.core.errors import WxbError
from wxb.core.progress import track
from wxb.corpora.records import RecordError
from wxb.tasks.methods import Predictor
from wxb.tasks.speech.models.features import log_mel, to_window
from wxb.tasks.speech.params import Prediction
from wxb.tasks.speech.record import audio
from wxb.tasks.speech.record.audio import FRAMES, HOP, RATE

TOP_DB = 40.0  # silence is this far below the loudest moment
# Chosen on validation sentences that were spoken with pauses, in rooms of three noises.
SMOOTHING, NOISE_SPAN = 3, 1000  # frames of 10 ms: for mean loudness, and for minimum loudness
SPEECH_OVER_NOISE = 6.0  # dB
MIN_PAUSE, MIN_SPEECH = 20, 5  # frames; anything shorter than MIN_SPEECH is a click
MARGIN = 1  # frames around speech: a model may never have seen silence before it
# Two characters without a space between them: of a script without spaces, or before a mark.
UNSPACED = regex.compile(
    r"[\s\p{Han}\p{Hiragana}\p{Katakana}\p{Line_Break=Complex_Context}\u3000-\u303f\uff00-\uffef]"
    r"|.[,.;:!?]"
)
Window = tuple[int, int]  # a range of samples of a recording


class Segment(NamedTuple):
    """The transcript of a window, with its start and end in seconds."""

    start: float
    end: float
    text: str


class Transcript(NamedTuple):
    """The transcript of a recording, by window."""

    segments: tuple[Segment, ...]

    @property
    def text(self) -> str:
        """The texts of all segments, with a space between two that do not match UNSPACED there."""
        joined = ""
        for text in filter(None, (segment.text for segment in self.segments)):
            is_joined = not joined or UNSPACED.search(joined[-1] + text[0])
            joined += text if is_joined else f" {text}"
        return joined


class Recogniser(Predictor):
    """A trained model with its tokenizer and the length of its windows."""

    file_suffixes: ClassVar[Sequence[str]] = audio.SUFFIXES
    hub_task, example = "automatic-speech-recognition", '"recording.wav"'
    prediction = Prediction()

    @abstractmethod
    def transcribe(self, features: NDArray[np.float32]) -> list[str]:
        """The transcript of each window, from log-mel features (B, frames, bands)."""

    def predictions(self, inputs: Sequence[str | bytes], /, *, caption: str) -> list[Transcript]:
        """Transcripts of recordings (paths or bytes), empty if silent; WxbError if unreadable."""
        windows = track(self._windows(inputs), caption, unit="window")
        segments: list[list[Segment]] = [[] for _ in inputs]
        while batch := [*islice(windows, self.prediction.batch_size)]:
            texts = self.transcribe(np.stack([features for _, _, features in batch]))
            for (index, (start, end), _), text in zip(batch, texts, strict=True):
                segments[index].append(Segment(round(start / RATE, 2), round(end / RATE, 2), text))
        return [Transcript(tuple(row)) for row in segments]

    def output_fields(self, input_: Any, prediction: Transcript) -> dict[str, Any]:
        """The text and the segments with their times, as JSON."""
        segments = [segment._asdict() for segment in prediction.segments]
        return {"text": prediction.text, "segments": segments}

    def _windows(self, inputs: Sequence[str | bytes]) -> Iterator[tuple[int, Window, Any]]:
        """Yield each window of all recordings: index of the recording, range, padded features."""
        seconds, bands = self.settings["window"], self.settings["mel_bands"]
        for index, source in enumerate(inputs):
            samples = read(source)
            for start, end in windows(samples, seconds, pause=self.prediction.pause):
                features = log_mel(samples[start:end], bands, seconds * FRAMES)
                yield index, (start, end), to_window(features, seconds * FRAMES)


def read(source: str | bytes) -> NDArray[np.float32]:
    """The samples of a file, or of its bytes. Raises WxbError if it cannot be read."""
    try:
        return audio.read(source if isinstance(source, bytes) else Path(source))
    except RecordError as error:
        name = "standard input" if isinstance(source, bytes) else source
        raise WxbError(f"{name}: {error.reason}: {error.detail}") from None


def windows(samples: NDArray[np.float32], seconds: int, *, pause: float) -> list[Window]:
    """Windows of at most `seconds` that cover all speech; none if the recording is silent.

    A recording whose part between silent ends fits into a window is not split. In a longer one,
    pauses of `pause` seconds always separate windows, shorter ones only if the window would be too
    long. Speech without a pause that exceeds a window is cut at the quietest moment of the window's
    second half.
    """
    levels = audio.frame_levels(samples)
    if levels.max(initial=-np.inf) < audio.SILENT:
        return []
    start, end = audio.audible_range(levels, TOP_DB)
    end, longest = min(end, len(samples)), seconds * RATE
    if end - start <= longest:
        return [(start, end)]
    smooth = 10 * np.log10(uniform_filter1d(10 ** (levels / 10), SMOOTHING))
    ranges: list[Window] = []
    previous_end = 0  # of an utterance, in frames
    for first, last in _utterances(smooth, levels.max() - TOP_DB):
        start, end = max(0, first - MARGIN) * HOP, min((last + MARGIN) * HOP, len(samples))
        if ranges and first - previous_end < pause * FRAMES and end - ranges[-1][0] <= longest:
            start, _ = ranges.pop()
        while end - start > longest:
            middle, limit = (start + longest // 2) // HOP, (start + longest) // HOP
            cut = (middle + int(smooth[middle:limit].argmin())) * HOP
            ranges.append((start, cut))
            start = cut
        ranges.append((start, end))
        previous_end = last
    return ranges


def _utterances(loudness: NDArray[np.float64], minimum: float) -> Iterator[tuple[int, int]]:
    """Frame ranges of speech, split at pauses, by the loudness (F,) in dB; lone clicks are skipped.

    Speech is louder than `minimum` and than the noise around it: the minimum loudness within
    NOISE_SPAN frames. Rooms are never silent, and their noise changes.
    """
    noise = minimum_filter1d(loudness, NOISE_SPAN)
    loud = np.flatnonzero(loudness >= np.maximum(noise + SPEECH_OVER_NOISE, minimum))
    for frames in np.split(loud, np.flatnonzero(np.diff(loud) > MIN_PAUSE) + 1):
        if len(frames) >= MIN_SPEECH:
            yield int(frames[0]), int(frames[-1]) + 1
