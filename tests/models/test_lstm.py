"""The LSTM classifier: padding, special tokens, and both directions."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from wxb.models.lstm import LSTM, LSTMClassifier, run_bidirectional, without_special_tokens

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
@settings(deadline=None, max_examples=10)
def test_the_textbook_version_returns_the_same_logits(texts):
    model = classifier(num_layers=2)
    textbook = LSTM(6, 4, 2, bidirectional=True).double()
    textbook.load_state_dict(model.lstm.state_dict(), strict=True)
    ids, mask = batch(texts)
    _, (hidden, _) = textbook(model.embedding(ids), mask.bool())
    logits = model.classifier(torch.cat([hidden[-2], hidden[-1]], dim=-1))
    torch.testing.assert_close(model(ids, mask)["logits"], logits)


@given(rows)
@settings(deadline=None, max_examples=30)
def test_special_tokens_are_removed_from_every_row(texts):
    ids, mask = without_special_tokens(*batch([[CLS, *text, SEP] for text in texts]))
    texts_without_special_tokens = [
        row[is_token.bool()].tolist() for row, is_token in zip(ids, mask, strict=True)
    ]
    assert texts_without_special_tokens == texts


def test_the_backward_direction_skips_padding():
    torch.manual_seed(1)
    layers = torch.nn.LSTM(3, 4, batch_first=True, bidirectional=True).double()
    inputs, mask = torch.randn(1, 5, 3).double(), torch.tensor([[True, True, False, False, False]])
    alone, ends = run_bidirectional(layers, inputs[:, :2], mask[:, :2])
    skipped, skipped_ends = run_bidirectional(layers, inputs, mask)
    torch.testing.assert_close((skipped[:, :2], skipped_ends), (alone, ends))
    unmasked, _ = layers(inputs)
    assert (unmasked[:, :2] - alone).abs().max() > 0.01
