"""Read, check and count recordings and their transcripts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wxb.corpora import reading
from wxb.corpora.formats import Raw
from wxb.corpora.records import Record, RecordError, Reject, check_encodable, required_field
from wxb.tasks.speech.params import Audio, Corpus
from wxb.tasks.speech.reading import manifest
from wxb.tasks.speech.record import audio
from wxb.tasks.speech.record.audio import RATE, AudioError, Measures
from wxb.tasks.speech.record.normalization import normalize

FOLDER = "audio"  # of the prepared recordings, beside the Parquet files


class Job(NamedTuple):
    """A recording to prepare, and the file to write."""

    source: Path
    target: Path
    limits: Audio


def prepare_recording(job: Job) -> tuple[Measures, str] | AudioError:
    """Trim, measure and write a recording as FLAC; its measures and the SHA-256 of its samples.

    Returns the error, which must not end other jobs, if the recording cannot be used.
    """
    limits = job.limits
    try:
        # Silence at the ends does not count as length, but must not take hours to read.
        samples = audio.read(job.source, longest=2 * limits.max_seconds + 60)
        kept, measures = audio.trim(
            samples,
            top_db=limits.top_db,
            shortest=limits.min_seconds,
            longest=limits.max_seconds,
        )
    except AudioError as error:
        return error
    return measures, audio.write(job.target, kept, RATE)


class Reading(reading.Reading):
    """Recordings with their transcripts."""

    TEST_GROUP = "speaker"

    def raw_records(self, file: Path, corpus: Corpus) -> Iterator[Raw]:
        """The rows of a manifest."""
        return manifest.raw_records(file, corpus)

    def gold(
        self, raw: Mapping[str, Any], text: str, corpus: Corpus
    ) -> tuple[Any, tuple[str, ...]]:
        """The transcript, speaker and rules, None without a transcript; nothing is repaired.

        Raises RecordError if the transcript is no text, or empty when normalized.
        """
        fields, rules = corpus.fields, corpus.normalization.rules
        sentence = required_field(raw, fields.sentence)
        if sentence is None:
            return None, ()
        if not isinstance(sentence, str):
            actual = type(sentence).__name__
            raise RecordError("wrong type", f"{fields.sentence!r} is {actual}, expected text")
        if not normalize(sentence, rules):
            raise RecordError("blank sentence", f"{sentence!r} has nothing that could be compared")
        speaker = raw.get(fields.speaker) if fields.speaker else None
        check_encodable(sentence, str(speaker))
        return {
            "text": sentence,
            "speaker": None if speaker is None else str(speaker),
            "rules": rules,
        }, ()

    def prepare(
        self,
        items: Iterable[Record | Reject],
        corpus: Corpus,
        *,
        folder: Path,
        out: Path,
        home: Path,
        label: str,
    ) -> Iterator[Record | Reject]:
        """The records, with paths of recordings that are written to `out` (later moved to `home`).

        Rejects recordings that cannot be used, are outside `folder`, or repeat the samples of an
        earlier one. Files that no record names are ignored. Works in parallel; shows progress.
        """
        items = list(items)
        yield from (item for item in items if isinstance(item, Reject))
        (out / FOLDER).mkdir(parents=True)
        inside: list[Record] = []
        for record in (item for item in items if isinstance(item, Record)):
            if Path(record.input).resolve().is_relative_to(folder.resolve()):
                inside.append(record)
            else:
                yield Reject(record.id, "outside the corpus", record.input, record.id)
        jobs = [
            Job(Path(record.input), out / FOLDER / f"{index:06}.flac", corpus.audio)
            for index, record in enumerate(inside)
        ]
        first: dict[str, str] = {}  # ids by digest
        results = audio.map_parallel(prepare_recording, jobs, label)
        for record, job, result in zip(inside, jobs, results, strict=True):
            if isinstance(result, AudioError):
                detail = f"{record.input}: {result.detail}"
                yield Reject(record.id, result.reason, detail, record.id)
                continue
            measures, digest = result
            if digest in first:
                job.target.unlink()
                detail = f"{record.input}: the same samples as {first[digest]}"
                yield Reject(record.id, "duplicate audio", detail, record.id)
                continue
            first[digest] = record.id
            path = (home / FOLDER / job.target.name).as_posix()
            gold = record.gold and {**record.gold, **measures._asdict()}
            yield replace(record, input=path, gold=gold)

    def wording(self, record: Record) -> str:
        """Empty: recordings of one sentence are no duplicates; `split.by` keeps them together."""
        return ""

    def leakage_text(self, record: Record) -> str:
        """The normalized transcript; empty without one."""
        return normalize(record.gold["text"], record.gold["rules"]) if record.gold else ""

    def describe(self, records: Sequence[Record]) -> dict[str, Any]:
        """Hours, recordings by speaker, clipped ones, and spreads of the labelled recordings.

        Spreads are those of transcripts (characters), duration (seconds), loudness (dB of full
        scale) and signal-to-noise ratio (dB).
        """
        golds = [record.gold for record in records]
        speakers = Counter(g["speaker"] for g in golds if g["speaker"] is not None)
        return {
            "characters": reading.length_quantiles([len(g["text"]) for g in golds]),
            "hours": round(sum(g["seconds"] for g in golds) / 3600, 4),
            "speakers": dict(sorted(speakers.items())),
            "clipped": sum(g["clipped"] > 0 for g in golds),
            **{name: _spread([g[name] for g in golds]) for name in ("seconds", "loudness", "snr")},
        }


def _spread(values: Sequence[float]) -> dict[str, float]:
    shares = (("lowest", 0.0), ("median", 0.5), ("highest", 1.0))
    values = values or [0.0]
    return {name: round(float(np.quantile(values, share)), 2) for name, share in shares}
