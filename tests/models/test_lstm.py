"""The LSTM classifier: padding and special tokens."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from wxb.models.lstm import LSTMClassifier, without_special_tokens

PAD, CLS, SEP = 0, 1, 2
rows = st.lists(st.lists(st.integers(3, 19), min_size=1, max_size=7), min_size=1, max_size=4)


def classifier(classes=3, **changes):
    torch.manual_seed(5)
    shape = {"embedding_size": 6, "hidden_size": 4, **changes}
    return LSTMClassifier(20, classes, **shape).double().eval()


def batch(texts, extra=0):
    width = max(map(len, texts)) + extra
    ids = torch.tensor([[*text, *[PAD] * (width - len(text))] for text in texts])
    return ids, (ids != PAD).long()


@given(rows, st.integers(0, 5), st.integers(1, 2))
@settings(deadline=None, max_examples=30)
def test_padding_and_other_rows_do_not_change_the_logits(texts, extra, layers):
    model = classifier(num_layers=layers)
    padded = model(*batch(texts, extra))["logits"]
    alone = torch.cat([model(*batch([text]))["logits"] for text in texts])
    torch.testing.assert_close(padded, alone)


@given(rows)
@settings(deadline=None, max_examples=30)
def test_special_tokens_are_removed_from_every_row(texts):
    ids, mask = without_special_tokens(*batch([[CLS, *text, SEP] for text in texts]))
    texts_without_special_tokens = [
        row[is_token.bool()].tolist() for row, is_token in zip(ids, mask, strict=True)
    ]
    assert texts_without_special_tokens == texts
