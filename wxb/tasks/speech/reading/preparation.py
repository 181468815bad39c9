"""Recordings made ready: 16 kHz mono without silence at their ends, measured, in FLAC files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from wxb.corpora.records import Record, Reject
from wxb.tasks.speech.params import Audio, Corpus
from wxb.tasks.speech.reading.writing import write
from wxb.tasks.speech.record.audio import cleaning, reading
from wxb.tasks.speech.record.audio.cleaning import Measures
from wxb.tasks.speech.record.audio.features import RATE
from wxb.tasks.speech.record.audio.parallel import each
from wxb.tasks.speech.record.audio.reading import AudioError

FOLDER = "audio"  # beside the Parquet files


class Job(NamedTuple):
    """A recording to be made ready, and where it is to be written."""

    source: Path
    target: Path
    audio: Audio


class Prepared(NamedTuple):
    """What was measured, and the SHA-256 of the samples; or why a recording cannot be used."""

    measures: Measures | None = None
    digest: str = ""
    reason: str = ""
    detail: str = ""


def prepared(
    items: Iterable[Record | Reject],
    corpus: Corpus,
    *,
    folder: Path,
    out: Path,
    home: Path,
    label: str,
) -> Iterator[Record | Reject]:
    """Records whose inputs are recordings in `out`, which will lie at `home`; several at a time.

    What cannot be used becomes a Reject: unreadable, silent, too long and the like; outside of
    `folder`; the same samples as an earlier one. Audio files that no record names are no part of
    the corpus.
    """
    items = list(items)
    records = [item for item in items if isinstance(item, Record)]
    yield from (item for item in items if isinstance(item, Reject))
    (out / FOLDER).mkdir(parents=True)
    inside: list[Record] = []
    for record in records:
        if _is_below(folder, Path(record.input)):
            inside.append(record)
        else:
            yield Reject(record.id, "outside the corpus", record.input, record.id)
    jobs = [
        Job(Path(record.input), out / FOLDER / f"{number:06}.flac", corpus.audio)
        for number, record in enumerate(inside)
    ]
    first: dict[str, str] = {}
    done = zip(inside, jobs, each(prepare, jobs, label), strict=True)
    for record, job, made in done:
        if made.measures is None:
            yield Reject(record.id, made.reason, f"{record.input}: {made.detail}", record.id)
        elif made.digest in first:
            job.target.unlink()
            detail = f"{record.input}: the same samples as {first[made.digest]}"
            yield Reject(record.id, "duplicate audio", detail, record.id)
        else:
            first[made.digest] = record.id
            path = (home / FOLDER / job.target.name).as_posix()
            gold = record.gold and {**record.gold, **made.measures._asdict()}
            yield replace(record, input=path, gold=gold)


def prepare(job: Job) -> Prepared:
    """Make one recording ready."""
    audio = job.audio
    try:
        # What is silent at the ends does not count, but is no reason to read for hours.
        samples = reading.read(job.source, longest=2 * audio.max_seconds + 60)
        kept, measures = cleaning.trimmed(
            samples,
            top_db=audio.top_db,
            shortest=audio.min_seconds,
            longest=audio.max_seconds,
        )
    except AudioError as error:
        return Prepared(reason=error.reason, detail=error.detail)
    return Prepared(measures, write(job.target, kept, RATE))


def _is_below(folder: Path, path: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())
