"""The gold of a source, which is one or more references, and how Parquet stores it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from wxb.corpora import records


class Labelling(records.Labelling):
    """The references of a source."""

    GOLD = pa.list_(pa.string())

    def unpack(self, value: Sequence[str]) -> tuple[str, ...]:
        """References as Parquet returns them."""
        return tuple(value)
