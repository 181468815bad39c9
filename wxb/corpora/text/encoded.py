"""Tokenized texts and training targets: flat arrays, kept as memory-mapped Arrow files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
from numpy.typing import NDArray

IGNORED = -100  # the target of a token that neither teaches nor votes


class Encoded(NamedTuple):
    """Tokens of several texts, laid end to end.

    `ids`, `starts` and `ends` have one entry a token, `splits` one entry a text and a last one:
    text i has the tokens `splits[i]:splits[i + 1]`. Offsets are code points of the untouched text,
    ascending, without white space at the edges; a token that covers none (a blank) has
    `starts == ends`.
    """

    ids: NDArray[np.int32]
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    splits: NDArray[np.int64]


TOKENS = Encoded._fields[:3]

# Arrays by name, and where each text begins in them.
Columns = tuple[dict[str, NDArray[Any]], NDArray[np.int64]]


def part(encoded: Encoded, start: int, stop: int) -> Encoded:
    """The texts `start:stop` alone."""
    splits = encoded.splits[start : stop + 1]
    ids, starts, ends = (values[splits[0] : splits[-1]] for values in encoded[:3])
    return Encoded(ids, starts, ends, splits - splits[0])


def write_encoded(path: Path, encoded: Encoded) -> None:
    """Write tokens to an Arrow file, one row a text."""
    write_columns(path, dict(zip(TOKENS, encoded[:3], strict=True)), encoded.splits)


def read_encoded(path: Path) -> Encoded:
    """Read what `write_encoded` wrote."""
    columns, splits = read_columns(path, TOKENS)
    return Encoded(**columns, splits=splits)


def joined(
    parts: Iterable[tuple[Mapping[str, NDArray[Any]], NDArray[np.int64]]],
) -> tuple[dict[str, NDArray[Any]], NDArray[np.int64]]:
    """Columns and splits of several chunks of texts (one at least), as of one."""
    columns, splits = zip(*parts, strict=True)
    lengths = np.concatenate([np.diff(s) for s in splits])
    together = {name: np.concatenate([c[name] for c in columns]) for name in columns[0]}
    return together, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def write_columns(
    path: Path, columns: Mapping[str, NDArray[Any]], splits: NDArray[np.int64]
) -> None:
    """Write arrays to an Arrow file: text i has the values `splits[i]:splits[i + 1]` of each.

    Raises ValueError where the splits do not end with the values.
    """
    if any(len(values) != splits[-1] for values in columns.values()):
        raise ValueError(f"splits end at {splits[-1]}, not with the values")
    offsets = pa.array(splits)
    table = pa.table(
        {
            name: pa.LargeListArray.from_arrays(offsets, pa.array(values))
            for name, values in columns.items()
        }
    )
    feather.write_feather(table, path, compression="uncompressed", chunksize=max(1, table.num_rows))


def read_columns(
    path: Path, names: Sequence[str]
) -> tuple[dict[str, NDArray[Any]], NDArray[np.int64]]:
    """Read arrays that `write_columns` wrote, and their splits."""
    table = feather.read_table(path, memory_map=True)
    splits = _column(table, names[0]).offsets.to_numpy()
    return {name: _values(table, name) for name in names}, splits


def _column(table: pa.Table, name: str) -> pa.LargeListArray:
    # Combining would copy even a single chunk; a table without rows has none.
    chunks = table[name].chunks
    return chunks[0] if chunks else table[name].combine_chunks()


def _values(table: pa.Table, name: str) -> NDArray[Any]:
    values: NDArray[Any] = _column(table, name).values.to_numpy()
    return values
