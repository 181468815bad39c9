"""The base class of trained speech models: recordings in, transcripts out.

Long recordings are split at pauses into windows that a model reads at once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import minimum_filter1d, uniform_filter1d

from wxb.core.errors import WxbError
from wxb.core.progress import track
from wxb.tasks.methods import Trained
from wxb.tasks.speech.params import Prediction
from wxb.tasks.speech.record import audio
from wxb.tasks.speech.record.audio import FRAMES, HOP, RATE

TOP_DB = 40.0  # silence is this far below the loudest moment
# Chosen on validation sentences that were spoken with pauses, in rooms of three noises.
SMOOTHING, NOISE_SPAN = 3, 1000  # frames of 10 ms: for mean loudness, and for minimum loudness
SPEECH_OVER_NOISE = 6.0  # dB
MIN_PAUSE, MIN_SPEECH = 20, 5  # frames; anything shorter than MIN_SPEECH is a click
MARGIN = 1  # frames around speech: a model may never have seen silence before it
SEARCH = 1.5  # times the mean number of characters of an overlap: where repetitions are searched
MIN_REPETITION = 2  # characters: a single one may be the same by chance


class Window(NamedTuple):
    """A range of samples of a recording; `overlaps` if it overlaps the window before it."""

    start: int
    end: int
    overlaps: bool = False


class Segment(NamedTuple):
    """A part of a transcript, with its start and end in seconds."""

    start: float
    end: float
    text: str


class Transcript(NamedTuple):
    """The transcript of a recording, by window."""

    segments: tuple[Segment, ...]

    @property
    def text(self) -> str:
        """The texts of all segments, joined by `join_texts`."""
        return join_texts(segment.text for segment in self.segments)


class Recogniser(Trained):
    """A trained model with its tokenizer and the length of its windows."""

    files: ClassVar[Sequence[str]] = audio.SUFFIXES
    prediction = Prediction()

    @abstractmethod
    def transcribe(self, features: NDArray[np.float32]) -> list[str]:
        """The transcript of each window, from log-mel features (B, frames, bands)."""

    def predictions(self, inputs: Sequence[str | bytes], /, *, label: str) -> list[Transcript]:
        """The transcript of each recording, which is a path or the bytes of a file.

        Raises WxbError for an unreadable recording.
        """
        windows = track(self._windows(inputs), label, unit="window")
        segments: list[list[Segment]] = [[] for _ in inputs]
        while batch := [*islice(windows, self.prediction.batch_size)]:
            texts = self.transcribe(np.stack([features for _, _, features in batch]))
            for (index, window, _), text in zip(batch, texts, strict=True):
                append_window(segments[index], window, text)
        return [Transcript(tuple(row)) for row in segments]

    def describe(self, input_: Any, prediction: Transcript) -> dict[str, Any]:
        """The text and the segments with their times, as JSON."""
        segments = [segment._asdict() for segment in prediction.segments]
        return {"text": prediction.text, "segments": segments}

    def show(self, input_: Any, prediction: Transcript) -> str:
        """The text."""
        return prediction.text

    def _windows(
        self, inputs: Sequence[str | bytes]
    ) -> Iterator[tuple[int, Window, NDArray[np.float32]]]:
        """The windows of all recordings: index of the recording, range, features."""
        seconds, bands = self.settings["window"], self.settings["mel_bands"]
        overlap, pause = self.prediction.overlap, self.prediction.pause
        for index, source in enumerate(inputs):
            samples = read(source)
            for window in windows(samples, seconds, overlap=overlap, pause=pause):
                part = samples[window.start : window.end]
                features = audio.log_mel(part, bands, seconds * FRAMES)
                yield index, window, audio.to_window(features, seconds * FRAMES)


def read(source: str | bytes) -> NDArray[np.float32]:
    """The samples of a recording. Raises WxbError if it cannot be read."""
    try:
        return audio.read(source if isinstance(source, bytes) else Path(source))
    except audio.AudioError as error:
        name = "standard input" if isinstance(source, bytes) else source
        raise WxbError(f"{name}: {error.reason}: {error.detail}") from None


def windows(
    samples: NDArray[np.float32], seconds: int, *, overlap: float, pause: float
) -> list[Window]:
    """Windows of at most `seconds` that cover all speech; none if the recording is silent.

    A recording that fits into one window, without silence at its ends, is not split. In a longer
    one, pauses of `pause` seconds always separate windows, shorter ones only if the window would be
    too long. Speech without a pause that exceeds a window is split into windows that share
    `overlap` seconds.
    """
    levels = audio.loudness(samples)
    if levels.max(initial=-np.inf) < audio.SILENT:
        return []
    start, end = audio.audible_range(levels, TOP_DB)
    end, longest = min(end, len(samples)), seconds * RATE
    if end - start <= longest:
        return [Window(start, end)]
    ranges: list[Window] = []
    previous_end = 0  # of an utterance, in frames
    for first, last in _utterances(levels):
        start, end = max(0, first - MARGIN) * HOP, min((last + MARGIN) * HOP, len(samples))
        is_near = ranges and not ranges[-1].overlaps and first - previous_end < pause * FRAMES
        if is_near and end - ranges[-1].start <= longest:
            ranges[-1] = ranges[-1]._replace(end=end)
        else:
            ranges += _overlapping_windows(start, end, longest, round(overlap * FRAMES) * HOP)
        previous_end = last
    return ranges


def _utterances(levels: NDArray[np.float64]) -> Iterator[tuple[int, int]]:
    """The ranges of frames with speech that has no pause.

    Speech is louder than the noise around it: the minimum loudness within NOISE_SPAN frames. Rooms
    are never silent, and their noise changes.
    """
    smooth = 10 * np.log10(uniform_filter1d(10 ** (levels / 10), SMOOTHING))
    noise = minimum_filter1d(smooth, NOISE_SPAN)
    loud = np.flatnonzero(smooth >= np.maximum(noise + SPEECH_OVER_NOISE, levels.max() - TOP_DB))
    for frames in np.split(loud, np.flatnonzero(np.diff(loud) > MIN_PAUSE) + 1):
        if len(frames) >= MIN_SPEECH:
            yield int(frames[0]), int(frames[-1]) + 1


def _overlapping_windows(start: int, end: int, longest: int, overlap: int) -> Iterator[Window]:
    """Windows of at most `longest` samples; each shares `overlap` samples with the one before."""
    yield Window(start, min(end, start + longest))
    while start + longest < end:
        start += longest - overlap
        yield Window(start, min(end, start + longest), overlaps=True)


def append_window(segments: list[Segment], window: Window, text: str) -> None:
    """Append the transcript of a window to segments, in place.

    If the window overlaps the last segment, repeated text is removed, and both meet in the middle
    of the overlap.
    """
    start, end = window.start / RATE, window.end / RATE
    if window.overlaps:
        previous = segments[-1]
        shared = previous.end - start
        share = shared / (previous.end - previous.start)
        previous_text, text = without_repetition(previous.text, text, share)
        middle = round(start + shared / 2, 2)
        segments[-1] = previous._replace(text=previous_text, end=middle)
        start = middle
    segments.append(Segment(round(start, 2), round(end, 2), text))


def without_repetition(first: str, second: str, share: float) -> tuple[str, str]:
    """Two transcripts of overlapping windows, with the text of the overlap only in the first.

    `share` is the overlap as a share of the first window. The longest match of the end of the first
    and the beginning of the second is kept once. Without a match, both are returned unchanged.
    """
    room = max(MIN_REPETITION, round(SEARCH * share * len(first)))
    tail, head = first[-room:], second[:room]
    match = SequenceMatcher(None, tail, head, autojunk=False).find_longest_match()
    if match.size < MIN_REPETITION:
        return first, second
    kept = len(first) - len(tail) + match.a + match.size
    return first[:kept], second[match.b + match.size :]


def join_texts(texts: Iterable[str]) -> str:
    """The texts joined, with a space between two of them if ASCII characters would meet."""
    joined = ""
    for text in filter(None, texts):
        meets = joined and joined[-1].isascii() and text[0].isascii() and text[0].isalnum()
        joined += f" {text}" if meets and joined[-1] != " " else text
    return joined
