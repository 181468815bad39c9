"""Recurrent layers compared with torch: outputs, states, gradients and padding."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from wxb.models.lstm import LSTM, run_bidirectional
from wxb.models.rnn import RNN

KINDS = {RNN: nn.RNN, LSTM: nn.LSTM}

each_kind = pytest.mark.parametrize("kind", KINDS, ids=["rnn", "lstm"])
sizes = st.integers(1, 6)
shapes = st.fixed_dictionaries(
    {"input_size": sizes, "hidden_size": sizes, "num_layers": st.integers(1, 3)}
    | {"bidirectional": st.booleans()}
)
batches = st.integers(1, 5).flatmap(
    lambda rows: st.lists(st.integers(0, 6), min_size=rows, max_size=rows)
)


def ours_and_theirs(kind, shape):
    ours = kind(**shape).double()
    theirs = KINDS[kind](**shape, batch_first=True).double()
    theirs.load_state_dict(ours.state_dict(), strict=True)
    return ours, theirs


def padded(lengths, size):
    width = max(1, *lengths)
    mask = torch.arange(width) < torch.tensor(lengths)[:, None]
    return torch.randn(*mask.shape, size, dtype=torch.float64), mask


def packed(layers, inputs, mask):
    """Torch's outputs and final states of padded rows; zero for rows without tokens."""
    lengths = mask.sum(dim=1)
    sequence = nn.utils.rnn.pack_padded_sequence(
        inputs, lengths.clamp(min=1), batch_first=True, enforce_sorted=False
    )
    output, last = layers(sequence)
    outputs, _ = nn.utils.rnn.pad_packed_sequence(
        output, batch_first=True, total_length=inputs.shape[1]
    )
    states = torch.stack(last) if isinstance(last, tuple) else last[None]  # (S, L * D, B, H)
    return torch.where(mask[..., None], outputs, 0), torch.where(lengths[:, None] > 0, states, 0)


def gradients(model, inputs, results):
    weights = torch.linspace(-1, 1, sum(r.numel() for r in results), dtype=inputs.dtype)
    model.zero_grad()
    (torch.cat([r.flatten() for r in results]) @ weights).backward()
    return {name: p.grad.clone() for name, p in model.named_parameters()}


@each_kind
@given(shape=shapes, lengths=batches, seed=st.integers(0, 99))
@settings(deadline=None, max_examples=40)
def test_outputs_states_and_gradients_equal_torch(kind, shape, lengths, seed):
    torch.manual_seed(seed)
    ours, theirs = ours_and_theirs(kind, shape)
    inputs, mask = padded(lengths, shape["input_size"])
    actual, expected = ours(inputs, mask), packed(theirs, inputs, mask)
    torch.testing.assert_close(actual, expected)
    torch.testing.assert_close(gradients(ours, inputs, actual), gradients(theirs, inputs, expected))


@each_kind
@given(shape=shapes, seed=st.integers(0, 99))
@settings(deadline=None, max_examples=10)
def test_names_and_initial_weights_equal_torch(kind, shape, seed):
    torch.manual_seed(seed)
    ours = kind(**shape)
    torch.manual_seed(seed)
    theirs = KINDS[kind](**shape, batch_first=True)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    torch.testing.assert_close(ours.state_dict(), theirs.state_dict(), rtol=0, atol=0)


@each_kind
@given(shape=shapes, mask=st.lists(st.booleans(), min_size=1, max_size=8), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=20)
def test_padding_changes_nothing_at_any_position(kind, shape, mask, seed):
    torch.manual_seed(seed)
    model, mask = kind(**shape).double(), torch.tensor(mask)[None]
    inputs = torch.randn(1, mask.shape[1], shape["input_size"], dtype=torch.float64)
    outputs, states = model(inputs, mask)
    assert not outputs[~mask].any()
    if mask.any():
        unpadded, last = model(inputs[mask][None])
        torch.testing.assert_close(outputs[mask], unpadded[0])
        torch.testing.assert_close(states, last)
    else:
        assert not states.any()


@given(
    shape=shapes.map(lambda shape: {**shape, "bidirectional": True}),
    lengths=batches,
    training=st.booleans(),
    seed=st.integers(0, 99),
)
@settings(deadline=None, max_examples=40)
def test_run_bidirectional_equals_the_textbook_version(shape, lengths, training, seed):
    torch.manual_seed(seed)
    textbook, fast = ours_and_theirs(LSTM, shape)
    inputs, mask = padded(lengths, shape["input_size"])
    with torch.set_grad_enabled(training):
        outputs, states = textbook(inputs, mask)
        actual = run_bidirectional(fast.train(training), inputs, mask)
    expected = outputs, torch.cat([states[0, -2], states[0, -1]], dim=-1)
    torch.testing.assert_close(actual, expected)
    if training:
        torch.testing.assert_close(
            gradients(fast, inputs, actual), gradients(textbook, inputs, expected)
        )


def test_run_bidirectional_has_the_same_outputs_under_autocast():
    layers = nn.LSTM(2, 3, 2, batch_first=True, bidirectional=True)
    inputs, mask = torch.randn(2, 4, 2), torch.ones(2, 4, dtype=torch.bool)
    with torch.autocast("cpu", torch.bfloat16):
        outputs, _ = run_bidirectional(layers, inputs, mask)
    assert torch.equal(outputs, run_bidirectional(layers, inputs, mask)[0])
