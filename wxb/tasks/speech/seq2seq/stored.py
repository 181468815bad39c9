"""Features of many recordings in a memory-mapped Arrow file: neither writing nor reading holds
more than a few of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

BATCH = 64  # recordings
SCHEMA = pa.schema([("frames", pa.large_list(pa.float16()))])


def write(path: Path, features: Iterable[NDArray[np.floating[Any]]], bands: int) -> None:
    """Write the frames (F, bands) of recordings in order, in half precision."""
    schema = SCHEMA.with_metadata({"bands": str(bands)})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as batches:
        held: list[NDArray[np.float16]] = []
        for frames in features:
            held.append(frames.astype(np.float16).ravel())
            if len(held) == BATCH:
                batches.write_batch(_batch(held, schema))
                held = []
        batches.write_batch(_batch(held, schema))


def _batch(held: Sequence[NDArray[np.float16]], schema: pa.Schema) -> pa.RecordBatch:
    offsets = pa.array(np.cumsum([0, *map(len, held)]), pa.int64())
    values = pa.array(np.concatenate([np.zeros(0, np.float16), *held]))
    return pa.record_batch([pa.LargeListArray.from_arrays(offsets, values)], schema=schema)


class Stored(Sequence[NDArray[np.float16]]):
    """What `write` wrote: the frames (F, bands) of each recording, read when they are asked for."""

    def __init__(self, path: Path) -> None:
        file = pa.ipc.open_file(pa.memory_map(str(path)))
        self.bands = int(file.schema.metadata[b"bands"])
        columns = [file.get_batch(index).column(0) for index in range(file.num_record_batches)]
        self._offsets = [column.offsets.to_numpy() for column in columns]
        self._values = [column.values.to_numpy() for column in columns]

    def __len__(self) -> int:
        return sum(len(offsets) - 1 for offsets in self._offsets)

    @overload
    def __getitem__(self, index: int) -> NDArray[np.float16]: ...

    @overload
    def __getitem__(self, index: slice) -> list[NDArray[np.float16]]: ...

    def __getitem__(self, index: int | slice) -> NDArray[np.float16] | list[NDArray[np.float16]]:
        """One recording, or several; IndexError beyond the last."""
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        place = range(len(self))[index]
        batch, row = divmod(place, BATCH)
        start, stop = self._offsets[batch][row : row + 2]
        frames: NDArray[np.float16] = self._values[batch][start:stop].reshape(-1, self.bands)
        return frames
