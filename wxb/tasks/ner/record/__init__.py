"""Typed spans as the gold of records, and their form in Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pyarrow as pa

from wxb.corpora import records


class Span(NamedTuple):
    """A type and the offsets [start, end) in code points, with 0 <= start < end (not checked)."""

    start: int
    end: int
    type: str


def f1(gold: Sequence[Iterable[Span]], predicted: Sequence[Iterable[Span]]) -> float:
    """Micro F1 of the spans of texts; 0 without spans. Duplicates in a text count once."""
    pairs = [({*g}, {*p}) for g, p in zip(gold, predicted, strict=True)]
    total = sum(len(g) + len(p) for g, p in pairs)
    return 2 * sum(len(g & p) for g, p in pairs) / total if total else 0.0


class Labelling(records.Labelling):
    """Typed spans of a text."""

    GOLD = pa.list_(pa.struct({"start": pa.int32(), "end": pa.int32(), "type": pa.string()}))
    TYPE = tuple[Span, ...]
