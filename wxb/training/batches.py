"""Batches of ragged items, for training and prediction alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from wxb.corpora.text.encoded import IGNORED

FILL = {"token_type_ids": 0, "attention_mask": 0, "words": 0}  # IGNORED elsewhere: in targets


def collate(
    items: Sequence[Mapping[str, NDArray[Any]]],
    pad: int,
    *,
    side: Literal["left", "right"] = "right",
) -> dict[str, torch.Tensor]:
    """Pad each column to the longest of its items: ids by `pad`, segments and words by 0, targets
    by IGNORED, and what is measured by 0, as silence is.

    Gives (B, T, ...) each, (B,) for scalars: int64, or float32 of floating numbers. With
    `input_ids` comes their `attention_mask`, 1 where there is a token.
    """
    columns = {name: [item[name] for item in items] for name in items[0]}
    if "input_ids" in columns:
        columns["attention_mask"] = [np.ones(len(ids), np.int64) for ids in columns["input_ids"]]
    fill = {**FILL, "input_ids": pad}
    return {name: _padded(rows, fill.get(name, IGNORED), side) for name, rows in columns.items()}


def _padded(rows: Sequence[NDArray[Any]], fill: int, side: str) -> torch.Tensor:
    measured = np.issubdtype(rows[0].dtype, np.floating)
    kind = np.float32 if measured else np.int64
    if rows[0].ndim == 0:
        return torch.from_numpy(np.array(rows, kind))
    longest = max(map(len, rows))
    batch = np.full((len(rows), longest, *rows[0].shape[1:]), 0 if measured else fill, kind)
    for target, row in zip(batch, rows, strict=True):
        target[slice(len(row)) if side == "right" else slice(longest - len(row), None)] = row
    return torch.from_numpy(batch)
