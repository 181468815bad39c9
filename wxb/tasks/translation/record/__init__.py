"""Texts with their translations: one reference at least, as Parquet keeps them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from wxb.corpora import labelling


class Labelling(labelling.Labelling):
    """The references of a source."""

    GOLD = pa.list_(pa.string())

    def pack(self, references: Sequence[str]) -> list[str]:
        """References as Parquet takes them."""
        return list(references)

    def unpack(self, value: Sequence[str]) -> tuple[str, ...]:
        """References from what Parquet gives."""
        return tuple(value)
