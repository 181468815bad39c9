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


def test_first_and_last_token_change_the_logits():
    model = classifier()
    plain = model(*batch([[5, 6, 7, 8], [9, 9]]))["logits"][0]
    for changed in ([15, 6, 7, 8], [5, 6, 7, 18]):
        assert (model(*batch([changed, [9, 9]]))["logits"][0] - plain).abs().max() > 1e-4


def test_it_learns_labels_that_depend_on_token_order():
    torch.manual_seed(0)
    pairs = torch.tensor([[a, b] for a in range(3, 11) for b in range(3, 11) if a != b])
    ids, mask = batch([pair.tolist() for pair in pairs], extra=3)
    labels = (pairs[:, 0] < pairs[:, 1]).long()
    model = LSTMClassifier(20, 2, embedding_size=16, hidden_size=16, dropout=0.1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(100):
        optimizer.zero_grad()
        model(ids, mask, labels)["loss"].backward()
        optimizer.step()
    assert (model.eval()(ids, mask)["logits"].argmax(-1) == labels).all()


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
