"""How recordings and their transcripts are read, checked and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wxb.corpora import reading
from wxb.corpora.formats import Raw
from wxb.corpora.records import Record, RecordError, Reject, encodable, required
from wxb.tasks.speech.params import Corpus
from wxb.tasks.speech.reading import manifest, preparation
from wxb.tasks.speech.record.normalization import normalized


class Reading(reading.Reading):
    """Recordings with their transcripts."""

    def raw_records(self, file: Path, corpus: Corpus) -> Iterator[Raw]:
        """The rows of a manifest."""
        return manifest.raw_records(file, corpus)

    def gold(
        self, raw: Mapping[str, Any], text: str, corpus: Corpus
    ) -> tuple[Any, tuple[str, ...]]:
        """What was said and by whom, None where nobody wrote it down; nothing is repaired."""
        fields, rules = corpus.fields, corpus.normalization.rules
        said = required(raw, fields.sentence)
        if said is None:
            return None, ()
        if not isinstance(said, str):
            found = type(said).__name__
            raise RecordError("wrong type", f"{fields.sentence!r} is {found}, expected text")
        if not normalized(said, rules):
            raise RecordError("blank sentence", f"{said!r} has nothing that could be compared")
        speaker = raw.get(fields.speaker) if fields.speaker else None
        encodable(said, str(speaker))
        return {
            "text": said,
            "speaker": None if speaker is None else str(speaker),
            "rules": rules,
        }, ()

    def prepared(
        self,
        items: Iterable[Record | Reject],
        corpus: Corpus,
        *,
        folder: Path,
        out: Path,
        home: Path,
        label: str,
    ) -> Iterator[Record | Reject]:
        """Records whose inputs are recordings in `out`, which will lie at `home`."""
        return preparation.prepared(items, corpus, folder=folder, out=out, home=home, label=label)

    def wording(self, record: Record) -> str:
        """Empty: a repeated sentence is another recording; `split.by` keeps both together."""
        return ""

    def describe(self, records: Sequence[Record]) -> dict[str, Any]:
        """Hours, speakers, and what was measured of labelled recordings."""
        golds = [record.gold for record in records]
        speakers = Counter(g["speaker"] for g in golds if g["speaker"] is not None)
        lengths = [len(g["text"]) for g in golds] or [0]
        characters = (("median", 0.5), ("p95", 0.95), ("longest", 1.0))
        return {
            "characters": {
                name: int(np.quantile(lengths, share, method="nearest"))
                for name, share in characters
            },
            "hours": round(sum(g["seconds"] for g in golds) / 3600, 4),
            "speakers": dict(sorted(speakers.items())),
            "clipped": sum(g["clipped"] > 0 for g in golds),
            **{name: _spread([g[name] for g in golds]) for name in ("seconds", "loudness", "snr")},
        }


def _spread(values: Sequence[float]) -> dict[str, float]:
    shares = (("lowest", 0.0), ("median", 0.5), ("highest", 1.0))
    found = values or [0.0]
    return {name: round(float(np.quantile(found, share)), 2) for name, share in shares}
