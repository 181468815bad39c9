"""Tokenized texts and training targets as flat arrays, in memory-mapped Arrow files."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
from numpy.typing import NDArray

IGNORED = -100  # the label of tokens without loss and metrics


class Encoded(NamedTuple):
    """The tokens of several texts, concatenated.

    `ids`, `starts` and `ends` have one entry per token. Text i has the tokens
    `row_splits[i]:row_splits[i + 1]`. Offsets count code points of the original text. They ascend
    and exclude outer white space; a token without other characters has `starts == ends`.
    """

    ids: NDArray[np.int32]
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    row_splits: NDArray[np.int64]


TOKENS = Encoded._fields[:3]

# Arrays by name, and the `row_splits` that divide all of them into texts.
RaggedColumns = tuple[dict[str, NDArray[Any]], NDArray[np.int64]]


def slice_texts(encoded: Encoded, start: int, stop: int) -> Encoded:
    """The tokens of the texts `start:stop`."""
    row_splits = encoded.row_splits[start : stop + 1]
    ids, starts, ends = (values[row_splits[0] : row_splits[-1]] for values in encoded[:3])
    return Encoded(ids, starts, ends, row_splits - row_splits[0])


def write_encoded(path: Path, chunks: Iterable[Encoded]) -> None:
    """Write at least one chunk of tokens to an Arrow file, one row per text."""
    write_chunks(path, ((dict(zip(TOKENS, c, strict=False)), c.row_splits) for c in chunks))


def read_encoded(path: Path) -> Encoded:
    """Read a file of `write_encoded`; the arrays are memory-mapped."""
    columns, row_splits = read_columns(path, TOKENS)
    return Encoded(**columns, row_splits=row_splits)


def concatenate(chunks: Iterable[RaggedColumns]) -> RaggedColumns:
    """The columns and `row_splits` of at least one chunk of texts as those of one chunk."""
    columns, row_splits = zip(*chunks, strict=True)
    lengths = np.concatenate([np.diff(s) for s in row_splits])
    arrays = {name: np.concatenate([c[name] for c in columns]) for name in columns[0]}
    return arrays, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def join_rows(rows: Sequence[NDArray[Any]], dtype: type) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The rows as one array and its `row_splits`; without rows, an empty array of this type."""
    row_splits = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    return np.concatenate([np.zeros(0, dtype), *rows]), row_splits


def write_chunks(path: Path, chunks: Iterable[RaggedColumns]) -> None:
    """Write at least one chunk of texts, as `write_columns` writes all of them at once.

    Only one chunk is in memory: temporary files beside `path` collect the arrays.
    """
    files: dict[str, tuple[IO[bytes], np.dtype[Any]]] = {}
    lengths = []
    with ExitStack() as stack:
        for columns, row_splits in chunks:
            lengths.append(np.diff(row_splits))
            for name, values in columns.items():
                if name not in files:
                    file = stack.enter_context(TemporaryFile(dir=path.parent))
                    files[name] = file, values.dtype
                files[name][0].write(np.ascontiguousarray(values).data)
        arrays: dict[str, NDArray[Any]] = {}
        for name, (content, dtype) in files.items():
            content.flush()
            arrays[name] = np.memmap(content, dtype, "r") if content.tell() else np.zeros(0, dtype)
        write_columns(path, arrays, np.cumsum(np.concatenate([[0], *lengths])))


def write_columns(
    path: Path, columns: Mapping[str, NDArray[Any]], row_splits: NDArray[np.int64]
) -> None:
    """Write arrays to an Arrow file; row i has `row_splits[i]:row_splits[i + 1]` of each array.

    Raises ValueError if `row_splits` do not end with the arrays.
    """
    if any(len(values) != row_splits[-1] for values in columns.values()):
        raise ValueError(f"row_splits end at {row_splits[-1]}, not with the values")
    offsets = _arrow_array(row_splits)
    lists = [pa.LargeListArray.from_arrays(offsets, _arrow_array(v)) for v in columns.values()]
    table = pa.Table.from_arrays(lists, [*columns])
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table)


def _arrow_array(values: NDArray[Any]) -> pa.Array:
    """Numbers as an Arrow array, not copied. `pa.array` imports pandas, which takes a second."""
    buffer = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, buffer])


def read_columns(path: Path, names: Sequence[str]) -> RaggedColumns:
    """A pair: arrays by name, and `row_splits`, of a file of `write_columns`; memory-mapped."""
    table, columns = feather.read_table(path, memory_map=True), {}
    for name in names:
        # `combine_chunks` copies even a single chunk; a table without rows has no chunk.
        columns[name] = (table[name].chunks or [table[name].combine_chunks()])[0]
    row_splits = columns[names[0]].offsets.to_numpy()
    return {name: column.values.to_numpy() for name, column in columns.items()}, row_splits
