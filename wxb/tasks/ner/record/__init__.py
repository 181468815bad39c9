"""Typed spans as the gold of records, and their form in Parquet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from wxb.corpora import records
from wxb.tasks.ner.record.spans import Span


class Labelling(records.Labelling):
    """Typed spans of a text."""

    GOLD = pa.list_(pa.struct({"start": pa.int32(), "end": pa.int32(), "type": pa.string()}))

    def pack(self, spans: Sequence[Span]) -> list[dict[str, Any]]:
        """Spans as mappings, for Parquet."""
        return [span._asdict() for span in spans]

    def unpack(self, value: Sequence[Mapping[str, Any]]) -> tuple[Span, ...]:
        """Spans from the mappings of Parquet."""
        return tuple(Span(**span) for span in value)
