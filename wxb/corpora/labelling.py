"""The base class for storing the gold of a task in Parquet."""

from __future__ import annotations

from typing import Any, ClassVar

import pyarrow as pa


class Labelling:
    """Converts gold to and from Parquet.

    A task overrides `pack` and `unpack` if its gold is not already a value that Parquet can store.
    """

    GOLD: ClassVar[pa.DataType]  # the type of gold in Parquet

    def pack(self, gold: Any) -> Any:
        """Convert gold (not None) to a value for Parquet."""
        return gold

    def unpack(self, value: Any) -> Any:
        """Convert a value from Parquet to gold."""
        return value
