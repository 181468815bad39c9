"""Batches of items of different lengths, for training and prediction."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from wxb.corpora.text.encoded import IGNORED

FILL = {"token_type_ids": 0, "attention_mask": 0, "words": 0}  # other columns: IGNORED


def collate(
    items: Sequence[Mapping[str, NDArray[Any]]],
    pad: int,
    *,
    side: Literal["left", "right"] = "right",
) -> dict[str, torch.Tensor]:
    """Make a batch: pad each column to its longest item, and to one element at least.

    It pads on the `side`, with `pad` for `input_ids`, 0 for token types, words and floats such as
    audio features, else IGNORED. Returns tensors (B, T, ...), or (B,) for scalars, of int64 or
    float32. For `input_ids` it adds their `attention_mask`, 1 for tokens.
    """
    columns = {name: [item[name] for item in items] for name in items[0]}
    if "input_ids" in columns:
        columns["attention_mask"] = [np.ones(len(ids), np.int64) for ids in columns["input_ids"]]
    fill = {**FILL, "input_ids": pad}
    return {name: _padded(rows, fill.get(name, IGNORED), side) for name, rows in columns.items()}


def _padded(rows: Sequence[NDArray[Any]], fill: int, side: str) -> torch.Tensor:  # floats: fill 0
    is_float = np.issubdtype(rows[0].dtype, np.floating)
    dtype = np.float32 if is_float else np.int64
    if rows[0].ndim == 0:
        return torch.from_numpy(np.array(rows, dtype))
    longest = max(1, *map(len, rows))
    batch = np.full((len(rows), longest, *rows[0].shape[1:]), 0 if is_float else fill, dtype)
    for target, row in zip(batch, rows, strict=True):
        target[slice(len(row)) if side == "right" else slice(longest - len(row), None)] = row
    return torch.from_numpy(batch)
