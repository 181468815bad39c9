"""Prepare a recording: 16 kHz mono FLAC without silence at its ends, and its measures."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from wxb.corpora.records import RecordError
from wxb.tasks.speech.params import Audio
from wxb.tasks.speech.reading.writing import write
from wxb.tasks.speech.record.audio import cleaning, reading
from wxb.tasks.speech.record.audio.cleaning import Measures
from wxb.tasks.speech.record.audio.features import RATE


class Job(NamedTuple):
    """A recording to prepare, and the file to write."""

    source: Path
    target: Path
    audio: Audio


def prepare_recording(job: Job) -> tuple[Measures, str] | RecordError:
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
    except RecordError as error:
        return error
    return measures, write(job.target, kept, RATE)
