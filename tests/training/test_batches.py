"""Batches: every item whole and in its place, and padding that says nothing."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from wxb.text.encoded import IGNORED
from wxb.training.batches import collate

PAD = 77
FILL = {
    "input_ids": PAD,
    "attention_mask": 0,
    "token_type_ids": 0,
    "words": [0, 0],
    "labels": IGNORED,
    "x": IGNORED,
}

lengths = st.lists(st.integers(1, 6), min_size=1, max_size=5)
sides = st.sampled_from(["left", "right"])


def items(lengths):
    """Items of these lengths, with values that differ from all padding."""
    return [
        {
            "input_ids": np.arange(100 * row, 100 * row + length, dtype=np.int32) + 1,
            "token_type_ids": np.ones(length, np.int64),
            "words": np.full((length, 2), 3),
            "labels": np.arange(length, dtype=np.int16),
            "x": np.zeros(length, np.int8),
            "next_sentence_label": np.array(row),
        }
        for row, length in enumerate(lengths)
    ]


@settings(deadline=None)
@given(lengths, sides)
def test_items_stand_on_their_side_and_the_rest_is_padding(lengths, side):
    rows = items(lengths)
    batch = collate(rows, PAD, side=side)
    assert set(batch) == {*rows[0], "attention_mask"}
    for row, item in enumerate(rows):
        length, gap = len(item["input_ids"]), max(lengths) - len(item["input_ids"])
        for name, fill in FILL.items():
            values = item.get(name, np.ones(length)).tolist()
            expected = [fill] * gap + values if side == "left" else values + [fill] * gap
            assert batch[name][row].tolist() == expected
    assert batch["next_sentence_label"].tolist() == list(range(len(lengths)))
    assert all(values.dtype == torch.int64 for values in batch.values())


def test_padding_is_on_the_right_unless_asked_for_on_the_left():
    batch = collate(items([1, 2]), PAD)
    assert batch["input_ids"].tolist() == [[1, PAD], [101, 102]]
    assert collate(items([1, 2]), PAD, side="left")["attention_mask"].tolist() == [[0, 1], [1, 1]]


def test_a_batch_shares_no_memory_with_its_items():
    rows = items([2])
    collate(rows, PAD)["input_ids"][:] = 5
    assert rows[0]["input_ids"].tolist() == [1, 2]
