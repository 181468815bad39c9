"""What all trained recognisers of speech do: recordings in, transcripts out.

Long recordings are cut where nobody speaks, into windows that a model hears at once.
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
from wxb.core.progress import tracked
from wxb.tasks.methods import Trained
from wxb.tasks.speech.params import Prediction
from wxb.tasks.speech.record.audio import reading
from wxb.tasks.speech.record.audio.cleaning import SILENT, heard, loudness_of
from wxb.tasks.speech.record.audio.features import FRAMES, HOP, RATE, log_mel, to_window

TOP_DB = 40.0  # as far below the loudest moment there is silence
# Chosen on validation sentences that were spoken with pauses, in rooms of three noises.
SMOOTH, AROUND = 3, 1000  # frames of 10 ms: over which loudness is averaged, and noise looked for
ABOVE = 6.0  # dB over the noise, somebody speaks
PAUSE, WORD = 20, 5  # frames: the shortest pause, and the shortest that is not a click
MARGIN = 1  # frame on either side of what is said: a model may never have heard silence before it
SEEN = 1.5  # times the characters that an overlap holds on average, where its words are looked for
LEAST = 2  # characters that two windows share, where they share any: one may be the same by chance


class Window(NamedTuple):
    """Samples from `start` to `end`; `joined`: it begins before the window before it ends."""

    start: int
    end: int
    joined: bool = False


class Segment(NamedTuple):
    """A part of a transcript, and the seconds of the recording that it is of."""

    start: float
    end: float
    text: str


class Transcript(NamedTuple):
    """What was said in a recording, window by window."""

    segments: tuple[Segment, ...]

    @property
    def text(self) -> str:
        """All of it; segments are one space apart where a word of letters ends one."""
        return joined_by_words(segment.text for segment in self.segments)


class Cut(NamedTuple):
    """One window of a recording: which input it is of, where it lies, and what is heard in it."""

    place: int
    window: Window
    features: NDArray[np.float32]  # (frames, bands)


class Recogniser(Trained):
    """A trained model with its tokenizer, and how long its windows are."""

    files: ClassVar[Sequence[str]] = reading.SUFFIXES
    prediction = Prediction()

    @abstractmethod
    def write(self, features: NDArray[np.float32]) -> list[str]:
        """The transcript of each window (B, frames, bands)."""

    def predictions(self, inputs: Sequence[str | bytes], /, *, label: str) -> list[Transcript]:
        """The transcript of each recording: a path, or the bytes of a file.

        Raises WxbError for one that cannot be read. A few are in memory at a time.
        """
        cuts = tracked(self._cuts(inputs), label, unit="window")
        found: list[list[Segment]] = [[] for _ in inputs]
        while batch := [*islice(cuts, self.prediction.batch_size)]:
            texts = self.write(np.stack([cut.features for cut in batch]))
            for cut, text in zip(batch, texts, strict=True):
                add(found[cut.place], cut.window, text)
        return [Transcript(tuple(segments)) for segments in found]

    def describe(self, given: Any, prediction: Transcript) -> dict[str, Any]:
        """The text, and when which part of it was said, in seconds."""
        segments = [segment._asdict() for segment in prediction.segments]
        return {"text": prediction.text, "segments": segments}

    def show(self, given: Any, prediction: Transcript) -> str:
        """The text."""
        return prediction.text

    def _cuts(self, inputs: Sequence[str | bytes]) -> Iterator[Cut]:
        seconds, bands = self.settings["window"], self.settings["mel_bands"]
        length = seconds * FRAMES
        for place, given in enumerate(inputs):
            # Read twice, first to find the pauses: so that hours of sound need not be held.
            levels, samples = loudness_of(blocks(given))
            shared = {"overlap": self.prediction.overlap, "pause": self.prediction.pause}
            found = windows(levels, samples, seconds, **shared)
            for window, stretch in zip(found, stretches(blocks(given), found), strict=True):
                yield Cut(place, window, to_window(log_mel(stretch, bands, length), length))


def blocks(given: str | bytes) -> Iterator[NDArray[np.float32]]:
    """The samples of a recording, some at a time; WxbError where it cannot be read."""
    try:
        yield from reading.blocks(given if isinstance(given, bytes) else Path(given))
    except reading.AudioError as error:
        name = "standard input" if isinstance(given, bytes) else given
        raise WxbError(f"{name}: {error.reason}: {error.detail}") from None


def read(given: str | bytes) -> NDArray[np.float32]:
    """All samples of a recording; WxbError where it cannot be read."""
    return np.concatenate([*blocks(given)])


def windows(
    levels: NDArray[np.float64], samples: int, seconds: int, *, overlap: float, pause: float
) -> list[Window]:
    """Windows of at most so many seconds over all that is heard; none where nothing is.

    `levels` (F,) are how loud each 10 ms of the recording is. One that is no longer than a window
    is heard as it is. Of a longer one, a window holds what is said between pauses of `pause`
    seconds, or as much of it as ends in a shorter one. Where somebody speaks on for longer than
    that, neighbours share `overlap` seconds, of which the words of one tell how those of the other
    go on.
    """
    if levels.max(initial=-np.inf) < SILENT:
        return []
    start, end = heard(levels, TOP_DB)
    end, longest = min(end, samples), seconds * RATE
    if end - start <= longest:
        return [Window(start, end)]
    found: list[Window] = []
    stopped = 0  # the frame in which the utterance before ended
    for first, last in _utterances(levels):
        start, end = max(0, first - MARGIN) * HOP, min((last + MARGIN) * HOP, samples)
        goes_on = found and not found[-1].joined and first - stopped < pause * FRAMES
        if goes_on and end - found[-1].start <= longest:
            found[-1] = found[-1]._replace(end=end)
        else:
            found += _cut(start, end, longest, round(overlap * FRAMES) * HOP)
        stopped = last
    return found


def _utterances(levels: NDArray[np.float64]) -> Iterator[tuple[int, int]]:
    """The frames from which and up to which somebody speaks without a pause.

    That is where it is louder than the noise around, which is what the quietest moment of the
    seconds before and after has: a room is never silent, and not always equally loud.
    """
    smooth = 10 * np.log10(uniform_filter1d(10 ** (levels / 10), SMOOTH))
    noise = minimum_filter1d(smooth, AROUND)
    loud = np.flatnonzero(smooth >= np.maximum(noise + ABOVE, levels.max() - TOP_DB))
    for frames in np.split(loud, np.flatnonzero(np.diff(loud) > PAUSE) + 1):
        if len(frames) >= WORD:
            yield int(frames[0]), int(frames[-1]) + 1


def _cut(start: int, end: int, longest: int, overlap: int) -> Iterator[Window]:
    """One window, or several that share `overlap` samples with the one before."""
    yield Window(start, min(end, start + longest))
    while start + longest < end:
        start += longest - overlap
        yield Window(start, min(end, start + longest), joined=True)


def stretches(
    blocks: Iterable[NDArray[np.float32]], found: Iterable[Window]
) -> Iterator[NDArray[np.float32]]:
    """The samples of each window, of blocks that are read no further than needed."""
    blocks, held, at = iter(blocks), np.zeros(0, np.float32), 0  # `held` begins at sample `at`
    for window in found:
        while at + len(held) < window.end:
            passed = min(len(held), max(0, window.start - at))
            held, at = np.concatenate([held[passed:], next(blocks)]), at + passed
        yield held[window.start - at : window.end - at]


def add(segments: list[Segment], window: Window, text: str) -> None:
    """Append the transcript of a window, without what the one before has of it already."""
    start, end = window.start / RATE, window.end / RATE
    if window.joined:
        before = segments[-1]
        shared = before.end - start
        kept, text = parted(before.text, text, shared / (before.end - before.start))
        middle = round(start + shared / 2, 2)
        segments[-1] = before._replace(text=kept, end=middle)
        start = middle
    segments.append(Segment(round(start, 2), round(end, 2), text))


def parted(before: str, after: str, share: float) -> tuple[str, str]:
    """Two transcripts whose recordings share a stretch, without what both have of it.

    `share` is how much of the first recording that is. What is written alike at the end of the one
    and the beginning of the other stays with the first; where nothing is, both stay whole.
    """
    room = max(LEAST, round(SEEN * share * len(before)))
    tail, head = before[-room:], after[:room]
    same = SequenceMatcher(None, tail, head, autojunk=False).find_longest_match()
    if same.size < LEAST:
        return before, after
    kept = len(before) - len(tail) + same.a + same.size
    return before[:kept], after[same.b + same.size :]


def joined_by_words(texts: Iterable[str]) -> str:
    """Texts end to end, a space between those where letters of an alphabet would meet."""
    whole = ""
    for text in filter(None, texts):
        meet = whole and whole[-1].isascii() and text[0].isascii() and text[0].isalnum()
        whole += f" {text}" if meet and whole[-1] != " " else text
    return whole
