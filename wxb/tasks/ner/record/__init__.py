"""Typed spans as the gold of records, and their form in Parquet."""

import pyarrow as pa

from wxb.corpora import records
from wxb.tasks.ner.record.spans import Span


class Labelling(records.Labelling):
    """Typed spans of a text."""

    GOLD = pa.list_(pa.struct({"start": pa.int32(), "end": pa.int32(), "type": pa.string()}))
    TYPE = tuple[Span, ...]
