"""How recordings and their transcripts are read, checked and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wxb.corpora import reading
from wxb.corpora.records import Record, RecordError, encodable, required
from wxb.tasks.speech.params import Corpus
from wxb.tasks.speech.reading import manifest, preparation
from wxb.tasks.speech.record.normalization import normalized

raw_records, prepared = manifest.raw_records, preparation.prepared
augmented = reading.augmented


def gold(raw: Mapping[str, Any], text: str, corpus: Corpus) -> tuple[Any, tuple[str, ...]]:
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
    return {"text": said, "speaker": None if speaker is None else str(speaker), "rules": rules}, ()


def wording(record: Record) -> str:
    """None: who says a sentence again makes another recording; `split.by` keeps them together."""
    return ""


def labels(records: Sequence[Record]) -> list[str]:
    """None: what is said is not one of several."""
    return []


def describe(records: Sequence[Record]) -> dict[str, Any]:
    """Hours, speakers, and what was measured of labelled recordings."""
    golds = [record.gold for record in records]
    speakers = Counter(g["speaker"] for g in golds if g["speaker"] is not None)
    lengths = [len(g["text"]) for g in golds] or [0]
    characters = (("median", 0.5), ("p95", 0.95), ("longest", 1.0))
    return {
        "characters": {
            name: int(np.quantile(lengths, share, method="nearest")) for name, share in characters
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
