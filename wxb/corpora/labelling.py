"""What gold is, for a task: how Parquet stores it."""

from __future__ import annotations

from typing import Any, ClassVar

import pyarrow as pa


class Labelling:
    """The gold of a task. A task overrides `pack` and `unpack` if Parquet needs another form."""

    GOLD: ClassVar[pa.DataType]  # the type of gold in Parquet

    def pack(self, gold: Any) -> Any:
        """Gold (not None) in the form that Parquet stores."""
        return gold

    def unpack(self, value: Any) -> Any:
        """Gold (not None) from what Parquet returns."""
        return value
