"""Features of many recordings in a memory-mapped Arrow file.

Reading and writing keep only a few recordings in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

BATCH = 64  # recordings
SCHEMA = pa.schema([("frames", pa.large_list(pa.float16()))])


def write(path: Path, features: Iterable[NDArray[np.floating[Any]]], bands: int) -> None:
    """Write the features (F, bands) of recordings in order, in half precision."""
    schema = SCHEMA.with_metadata({"bands": str(bands)})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as batches:
        rows: list[NDArray[np.float16]] = []
        for frames in features:
            rows.append(frames.astype(np.float16).ravel())
            if len(rows) == BATCH:
                batches.write_batch(_batch(rows, schema))
                rows = []
        batches.write_batch(_batch(rows, schema))


def _batch(rows: Sequence[NDArray[np.float16]], schema: pa.Schema) -> pa.RecordBatch:
    offsets = pa.array(np.cumsum([0, *map(len, rows)]), pa.int64())
    values = pa.array(np.concatenate([np.zeros(0, np.float16), *rows]))
    return pa.record_batch([pa.LargeListArray.from_arrays(offsets, values)], schema=schema)


class FeatureFile:
    """A file of `write`, whose features (F, bands) are read by index."""

    def __init__(self, path: Path) -> None:
        file = pa.ipc.open_file(pa.memory_map(str(path)))
        self.bands = int(file.schema.metadata[b"bands"])
        columns = [file.get_batch(index).column(0) for index in range(file.num_record_batches)]
        self._offsets = [column.offsets.to_numpy() for column in columns]
        self._values = [column.values.to_numpy() for column in columns]

    def __len__(self) -> int:
        return sum(len(offsets) - 1 for offsets in self._offsets)

    def __getitem__(self, index: int) -> NDArray[np.float16]:
        """The features of one recording. Raises IndexError beyond the last."""
        batch, row = divmod(range(len(self))[index], BATCH)
        start, stop = self._offsets[batch][row : row + 2]
        frames: NDArray[np.float16] = self._values[batch][start:stop].reshape(-1, self.bands)
        return frames
