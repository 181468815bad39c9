"""Tokenized texts and training targets: flat arrays, kept as memory-mapped Arrow files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    ascending, without white space at the edges; a token that covers none (special, or blank) has
    `starts == ends`. `truncated` tells which texts did not fit.
    """

    ids: NDArray[np.int32]
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    splits: NDArray[np.int64]
    truncated: NDArray[np.bool_]


class Targets(NamedTuple):
    """What a tagger learns, one entry a token, laid out like the `Encoded` it was made from."""

    tags: NDArray[np.int16]  # IGNORED, or a tag's number
    starts: NDArray[np.int8]  # 1 at the first token of a span, IGNORED where tags are
    ends: NDArray[np.int8]  # 1 at the last


def write_encoded(path: Path, encoded: Encoded) -> None:
    """Write tokens to an Arrow file, one row a text."""
    columns = _lists(("ids", "starts", "ends"), encoded[:3], encoded.splits)
    _write(path, {**columns, "truncated": pa.array(encoded.truncated)})


def read_encoded(path: Path) -> Encoded:
    """Read what `write_encoded` wrote."""
    table = feather.read_table(path, memory_map=True)
    ids, starts, ends = (_values(table, name) for name in ("ids", "starts", "ends"))
    splits = _column(table, "ids").offsets.to_numpy().astype(np.int64)
    return Encoded(ids, starts, ends, splits, table["truncated"].to_numpy())


def write_targets(path: Path, targets: Targets, splits: NDArray[np.int64]) -> None:
    """Write a tagger's targets to an Arrow file, one row a text."""
    write_columns(path, targets._asdict(), splits)


def read_targets(path: Path) -> Targets:
    """Read what `write_targets` wrote."""
    columns, _ = read_columns(path, Targets._fields)
    return Targets(**columns)


def write_columns(
    path: Path, columns: Mapping[str, NDArray[Any]], splits: NDArray[np.int64]
) -> None:
    """Write arrays to an Arrow file: text i has the values `splits[i]:splits[i + 1]` of each."""
    _write(path, _lists(tuple(columns), tuple(columns.values()), splits))


def read_columns(
    path: Path, names: Sequence[str]
) -> tuple[dict[str, NDArray[Any]], NDArray[np.int64]]:
    """Read arrays that `write_columns` wrote, and their splits."""
    table = feather.read_table(path, memory_map=True)
    splits = _column(table, names[0]).offsets.to_numpy().astype(np.int64)
    return {name: _values(table, name) for name in names}, splits


def _lists(
    names: Sequence[str], columns: Sequence[NDArray[Any]], splits: NDArray[np.int64]
) -> dict[str, pa.Array]:
    offsets = pa.array(splits.astype(np.int32))
    return {
        name: pa.ListArray.from_arrays(offsets, pa.array(column))
        for name, column in zip(names, columns, strict=True)
    }


def _write(path: Path, columns: dict[str, pa.Array]) -> None:
    table = pa.table(columns)
    feather.write_feather(table, path, compression="uncompressed", chunksize=max(1, table.num_rows))


def _column(table: pa.Table, name: str) -> pa.ListArray:
    # Combining would copy even a single chunk; a table without rows has none.
    chunks = table[name].chunks
    return chunks[0] if chunks else table[name].combine_chunks()


def _values(table: pa.Table, name: str) -> NDArray[Any]:
    values: NDArray[Any] = _column(table, name).values.to_numpy()
    return values
