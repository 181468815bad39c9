"""Decoders with and without the causal mask are compared on the same records."""

import pytest

from tests.benchmarks.script import script

direction = script("direction")


def test_a_gain_is_that_of_the_decoder_without_its_mask():
    def cell(correct):  # of 4 predicted and 4 gold spans in each of 10 groups
        return {
            "train": 20,
            "test": 10,
            "statistics": {
                "correct": [[correct + index % 2] for index in range(10)],
                "gold": [[4]] * 10,
                "predicted": [[4]] * 10,
            },
            "sizes": [1] * 10,
        }

    correct = {"causal": 0, "bidirectional": 3, "causal_words": 2, "bidirectional_words": 1}
    correct |= {"causal_scratch": 1, "bidirectional_scratch": 1}
    row = direction.table_row("names", {name: cell(count) for name, count in correct.items()})
    assert (row["training records"], row["test records"]) == (20, 10)
    expected = [(0.125, 0.875), (0.625, 0.375), (0.375, 0.375)]
    for (f1, gain), (causal, bidirectional) in zip(direction.PAIRS.values(), expected, strict=True):
        assert row[f1] == pytest.approx([causal, bidirectional])
        assert row[gain][0] == pytest.approx(bidirectional - causal)
