"""Batches: padding on either side, types, and attention masks."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from wxb.corpora.text.encoded import IGNORED
from wxb.training.batches import collate

PAD = 77
FILL = {"input_ids": PAD, "attention_mask": 0, "token_type_ids": 0, "words": [0, 0]}
FILL |= {"labels": IGNORED, "x": IGNORED}

lengths = st.lists(st.integers(1, 6), min_size=1, max_size=5)
sides = st.sampled_from(["left", "right"])


def items(lengths):
    """Items of these lengths, whose values differ from all padding."""
    return [
        {
            "input_ids": np.arange(100 * row, 100 * row + length, dtype=np.int32) + 1,
            "token_type_ids": np.ones(length, np.int64),
            "words": np.full((length, 2), 3),
            "labels": np.arange(length, dtype=np.int16),
            "x": np.zeros(length, np.int8),
            "next_sentence_label": np.array(row),
            "number": np.array(float(row)),
        }
        for row, length in enumerate(lengths)
    ]


@settings(deadline=None)
@given(lengths, sides)
def test_items_are_padded_on_the_other_side(lengths, side):
    rows = items(lengths)
    batch = collate(rows, PAD, side=side)
    assert set(batch) == {*rows[0], "attention_mask"}
    longest = max(lengths)
    for row, item in enumerate(rows):
        length = len(item["input_ids"])
        for name, fill in FILL.items():
            values, padding = item.get(name, np.ones(length)).tolist(), [fill] * (longest - length)
            expected = padding + values if side == "left" else values + padding
            assert batch[name][row].tolist() == expected
    assert batch["next_sentence_label"].tolist() == list(range(len(lengths)))
    number = batch.pop("number")
    assert (number.dtype, number.tolist()) == (torch.float32, [*map(float, range(len(lengths)))])
    assert all(values.dtype == torch.int64 for values in batch.values())


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_floats_are_float32_and_padded_with_0(kind):
    rows = [
        {"input_features": np.full((frames, 2), 0.5, kind), "labels": np.array([3] * labels)}
        for frames, labels in ((3, 1), (1, 2))
    ]
    batch = collate(rows, PAD)
    assert batch["input_features"].dtype == torch.float32
    assert batch["input_features"].tolist() == [[[0.5] * 2] * 3, [[0.5] * 2, [0.0] * 2, [0.0] * 2]]
    assert batch["labels"].tolist() == [[3, IGNORED], [3, 3]]
