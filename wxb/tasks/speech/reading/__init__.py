"""Read, check and count recordings and their transcripts, which tables list (manifests)."""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from wxb.core.progress import Progress
from wxb.corpora import formats, layout, reading
from wxb.corpora.formats import Raw
from wxb.corpora.reading import Items
from wxb.corpora.records import Record, RecordError, Reject, check_characters, required_field
from wxb.tasks.speech.params import Audio, Corpus, Fields
from wxb.tasks.speech.record import Measures, audio, normalize

End = tuple[str, ...]  # the last parts of a path
FOLDER = "audio"  # of the prepared recordings


def prepare_recording(job: tuple[Path, Path, Audio]) -> tuple[Measures, str] | RecordError:
    """Trim, measure and write a recording as FLAC; its measures and the SHA-256 of its samples.

    A job is the file to read, the file to write, and the limits. Returns the error, which must not
    end other jobs, if the recording cannot be used.
    """
    source, target, limits = job
    try:
        # Silence at the ends does not count as length, but must not take hours to read.
        samples = audio.read(source, longest=2 * limits.max_seconds + 60)
        kept, measures = audio.trim(samples, limits)
    except RecordError as error:
        return error
    return measures, audio.write_flac(target, kept)


class Reading(reading.Reading):
    """Recordings with their transcripts."""

    TEST_GROUP = "speaker"
    NAMED_FILES = audio.SUFFIXES

    def raw_records(self, file: Path, corpus: Corpus) -> Iterator[Raw]:
        """The rows of a manifest with the paths of their recordings.

        Paths are relative to the folder of the manifest. Missing and absolute ones are found by
        their last parts; if several files or paths of the table have these, the row is a
        RecordError. A row without a path uses its id. A row with seconds gets the path of that part
        (see `audio.read`). If `split.by` is the path, a recording's parts share a `document`.
        """
        files = _files_by_end(file.parent)
        raws = [*formats.raw_records(file, None, corpus.columns, corpus.annotator)]
        names = [_recording_name(raw.content, corpus.fields) for raw in raws]
        unique = {tuple(_path_ends(name)) for name in names if name is not None}
        counts = Counter(end for ends in unique for end in ends)
        documents: dict[Path, int] = {}
        for raw, name in zip(raws, names, strict=True):
            if name is None:
                yield raw
                continue
            try:
                path = _find_recording(file.parent / name, name, files, counts)
            except RecordError as error:
                yield raw._replace(content=error)
            else:
                source = path.as_posix() + _time_fragment(raw.content, corpus.fields)
                is_group = corpus.split.by == corpus.fields.input  # of all parts of a recording
                document = documents.setdefault(path, len(documents)) if is_group else None
                content = {**raw.content, corpus.fields.input: source}
                yield raw._replace(content=content, document=document)

    def gold_and_repairs(
        self, raw: Mapping[str, Any], text: str, corpus: Corpus
    ) -> tuple[Any, tuple[()]]:
        """`text`, `speaker` and `rules`, or None if the transcript is None; nothing is repaired.

        Raises RecordError if its field is missing, and if it is no text or empty when normalized.
        """
        fields, rules = corpus.fields, corpus.normalization.rules
        if (sentence := required_field(raw, fields.sentence)) is None:
            return None, ()
        if not isinstance(sentence, str):
            raise RecordError("wrong type", f"{fields.sentence!r} is {sentence!r}, expected text")
        if not normalize(sentence, rules):
            raise RecordError("blank sentence", f"{sentence!r} has nothing that could be compared")
        speaker = raw.get(fields.speaker) if fields.speaker else None
        speaker = None if speaker is None else str(speaker)
        check_characters(sentence, speaker or "")
        return {"text": sentence, "speaker": speaker, "rules": rules}, ()

    def prepare_inputs(
        self, items: Items, corpus: Corpus, *, folder: Path, out: Path, home: Path, caption: str
    ) -> Iterator[Record | Reject]:
        """The records, with paths in `home` of files written to `out`, and Measures in `gold`.

        Rejects recordings outside `folder` (first, with earlier rejects), unusable ones and
        repeated samples. Prints how many are in no usable row; shows progress.
        """
        records: list[Record] = []
        for item in items:
            if isinstance(item, Reject):
                yield item
            elif Path(item.input).resolve().is_relative_to(folder.resolve()):
                records.append(item)
            else:
                yield Reject(item.id, "outside the corpus", item.input, item.id)
        used = {Path(r.input.partition(audio.TIME_FRAGMENT)[0]).resolve() for r in records}
        files = {path for path in folder.rglob("*") if path.suffix.lower() in audio.SUFFIXES}
        if unused := sum(path.resolve() not in used for path in files):
            print(f"{caption}: {unused} recordings are in no usable row", file=Progress.console)
        targets = [out / FOLDER / f"{index:06}.flac" for index in range(len(records))]
        (out / FOLDER).mkdir(parents=True)
        inputs = [Path(record.input) for record in records]
        jobs = [(path, t, corpus.audio) for path, t in zip(inputs, targets, strict=True)]
        first: dict[str, str] = {}  # ids by digest
        results = audio.map_parallel(prepare_recording, jobs, caption)
        for record, target, result in zip(records, targets, results, strict=True):
            if isinstance(result, RecordError):
                detail = f"{record.input}: {result.detail}"
                yield Reject(record.id, result.reason, detail, record.id)
                continue
            measures, digest = result
            if first.setdefault(digest, record.id) != record.id:
                target.unlink()
                detail = f"{record.input}: the same samples as {first[digest]}"
                yield Reject(record.id, "duplicate audio", detail, record.id)
                continue
            path = (home / FOLDER / target.name).as_posix()
            gold = record.gold and {**record.gold, **measures._asdict()}
            yield replace(record, input=path, gold=gold)

    def preview(self, record: Record) -> str:
        """The id of the recording, then its seconds and transcript, or None without one."""
        seconds = f"{record.gold['seconds']:.1f} s, {record.gold['text']}" if record.gold else None
        return f"{record.id} -> {seconds}"

    def wording(self, record: Record) -> str:
        """Empty: recordings of one sentence are no duplicates; `split.by` keeps them together."""
        return ""

    def leakage_text(self, record: Record) -> str:
        """The normalized transcript; empty without one."""
        return normalize(record.gold["text"], record.gold["rules"]) if record.gold else ""

    def statistics(self, records: Sequence[Record]) -> dict[str, Any]:
        """`hours`, counts by `speakers`, count of `clipped`, and spreads of labelled recordings.

        Spreads (`lowest`, `median`, `highest`) are those of `seconds`, `loudness` (dB of full
        scale) and `snr` (dB); of `characters` of transcripts, `length_quantiles`.
        """
        golds = [record.gold for record in records]
        speakers = (g["speaker"] for g in golds if g["speaker"] is not None)
        return {
            "characters": reading.length_quantiles([len(g["text"]) for g in golds]),
            "hours": round(sum(g["seconds"] for g in golds) / 3600, 4),
            "speakers": reading.alphabetical_counts(speakers),
            "clipped": sum(g["clipped"] > 0 for g in golds),
            **{k: _quantiles([g[k] for g in golds]) for k in ("seconds", "loudness", "snr")},
        }


def _files_by_end(folder: Path) -> dict[End, set[Path]]:
    """The files below a folder that are not tables, each by its `_path_ends` in the folder."""
    files = defaultdict[End, set[Path]](set)
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() not in layout.SUFFIXES and path.is_file():
            for end in _path_ends(path.relative_to(folder).as_posix()):
                files[end].add(path)
    return files


def _recording_name(row: Any, fields: Fields) -> str | None:
    """The path of a row, or else its id; None if that is no text, or the row is invalid."""
    name = (row.get(fields.input) or row.get(fields.id)) if isinstance(row, Mapping) else None
    return name if isinstance(name, str) else None


def _find_recording(
    path: Path, name: str, files: Mapping[End, Collection[Path]], counts: Mapping[End, int]
) -> Path:
    """The path, or if absolute or no file, the file with the most last parts of `name`, if any.

    Raises RecordError if several files, or names in the table, have these parts.
    """
    with suppress(OSError):  # a name that is too long
        end = next((end for end in _path_ends(name) if end in files), None)
        if end and (name.startswith("/") or not path.is_file()):
            path, *others = files[end]
            if others or counts[end] > 1:
                detail = f"{name!r} ends as several files or paths do: {'/'.join(end)}"
                raise RecordError("ambiguous path", detail)
    return path


def _path_ends(path: str) -> Iterator[End]:
    """The last parts of a path, most parts first, in NFC, without case and suffix of audio."""
    file = PurePosixPath(unicodedata.normalize("NFC", path.replace("\\", "/").casefold()))
    file = file.with_suffix("") if file.suffix in audio.SUFFIXES else file
    return (file.parts[index:] for index in range(len(file.parts)))


def _time_fragment(row: Mapping[str, Any], fields: Fields) -> str:
    """`#t=2,4.5` from start and end or duration, unchecked; empty with a duration alone."""
    keys = (fields.start, fields.end, fields.duration)
    values = [row.get(key) if key else None for key in keys]
    try:
        start, end, duration = (None if x in (None, "") else round(float(x), 4) for x in values)
        if start is None and end is None:
            return ""
        start = start or 0.0
        return f"{audio.TIME_FRAGMENT}{start},{start + (duration or 0.0) if end is None else end}"
    except (TypeError, ValueError):
        return f"{audio.TIME_FRAGMENT}{values}"  # which is rejected as it is read


def _quantiles(values: Sequence[float]) -> dict[str, float]:
    """The `lowest`, `median` and `highest` value, to two decimals; 0 without values."""
    shares = (("lowest", 0.0), ("median", 0.5), ("highest", 1.0))
    values = values or [0.0]
    return {name: round(float(np.quantile(values, share)), 2) for name, share in shares}
