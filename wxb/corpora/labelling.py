"""What gold is, for a task: how Parquet keeps it.

Below are what those tasks take whose gold Parquet takes as it is.
"""

from __future__ import annotations

from typing import Any, Protocol

import pyarrow as pa


class Labelling(Protocol):
    """The module `record` of a task."""

    @property
    def GOLD(self) -> pa.DataType:  # noqa: N802
        """The type of gold in Parquet."""

    def pack(self, gold: Any) -> Any:
        """Gold (not None) as Parquet takes it."""

    def unpack(self, value: Any) -> Any:
        """Gold (not None) from what Parquet gives."""


def pack(gold: Any) -> Any:
    """Gold that Parquet takes as it is."""
    return gold


unpack = pack
