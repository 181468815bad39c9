"""The LSTM classifier: padding and special tokens."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from wxb.models.lstm import without_special_tokens

PAD, CLS, SEP = 0, 1, 2
rows = st.lists(st.lists(st.integers(3, 19), min_size=1, max_size=7), min_size=1, max_size=4)


def batch(texts, extra=0):
    width = max(map(len, texts)) + extra
    ids = torch.tensor([[*text, *[PAD] * (width - len(text))] for text in texts])
    return ids, (ids != PAD).long()


@given(rows)
@settings(deadline=None, max_examples=30)
def test_special_tokens_are_removed_from_every_row(texts):
    ids, mask = without_special_tokens(*batch([[CLS, *text, SEP] for text in texts]))
    texts_without_special_tokens = [
        row[is_token.bool()].tolist() for row, is_token in zip(ids, mask, strict=True)
    ]
    assert texts_without_special_tokens == texts
