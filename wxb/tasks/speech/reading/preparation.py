"""Prepare a recording: 16 kHz mono FLAC without silence at its ends, and its measures."""

from __future__ import annotations

import hashlib
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import soundfile
from numpy.typing import NDArray

from wxb.tasks.speech.params import Audio
from wxb.tasks.speech.record.audio import cleaning, reading
from wxb.tasks.speech.record.audio.cleaning import Measures
from wxb.tasks.speech.record.audio.features import RATE


class Job(NamedTuple):
    """A recording to prepare, and the file to write."""

    source: Path
    target: Path
    audio: Audio


def prepare_recording(job: Job) -> tuple[Measures, str] | reading.AudioError:
    """Trim, measure and write a recording; its measures and the SHA-256 of its samples.

    Returns the error, which must not end other jobs, if the recording cannot be used.
    """
    audio = job.audio
    try:
        # Silence at the ends does not count as length, but must not take hours to read.
        samples = reading.read(job.source, longest=2 * audio.max_seconds + 60)
        kept, measures = cleaning.trim(
            samples,
            top_db=audio.top_db,
            shortest=audio.min_seconds,
            longest=audio.max_seconds,
        )
    except reading.AudioError as error:
        return error
    return measures, write(job.target, kept, RATE)


def write(path: Path, samples: NDArray[np.floating[Any]], rate: int) -> str:
    """Write samples (N,), full scale 1, as FLAC with 16 bits each; returns their SHA-256.

    FLAC is lossless, half the size of WAV, and played by every browser.
    """
    whole = (np.clip(samples, -1, 1) * (2**15 - 1)).round().astype(np.int16)
    file = BytesIO()  # libsndfile waits for the disk after each write to a file
    soundfile.write(file, whole, rate, format="FLAC", subtype="PCM_16")
    path.write_bytes(file.getvalue())
    return hashlib.sha256(whole.tobytes()).hexdigest()
