"""Batches of ragged items, for training and prediction alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from wxb.text.encoded import IGNORED


def collate(
    items: Sequence[Mapping[str, NDArray[Any]]],
    pad: int,
    *,
    side: Literal["left", "right"] = "right",
) -> dict[str, torch.Tensor]:
    """Pad items to the longest of them: ids by `pad`, segments and words by 0, targets by
    IGNORED.

    Gives (B, T, ...) each, (B,) for scalars, and `attention_mask`, 1 where there is a token.
    """
    fill = {"input_ids": pad, "token_type_ids": 0, "attention_mask": 0, "words": 0}
    longest = max(len(item["input_ids"]) for item in items)

    def stacked(name: str, rows: Sequence[NDArray[Any]]) -> torch.Tensor:
        if rows[0].ndim == 0:
            return torch.from_numpy(np.stack(rows))
        shape = (len(rows), longest, *rows[0].shape[1:])
        batch = np.full(shape, fill.get(name, IGNORED), np.int64)
        for target, row in zip(batch, rows, strict=True):
            place = slice(len(row)) if side == "right" else slice(longest - len(row), None)
            target[place] = row
        return torch.from_numpy(batch)

    columns = {name: [item[name] for item in items] for name in items[0]}
    columns["attention_mask"] = [np.ones(len(ids), np.int64) for ids in columns["input_ids"]]
    return {name: stacked(name, rows) for name, rows in columns.items()}
