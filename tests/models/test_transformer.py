"""The Transformer compared with torch's: outputs, gradients and loss; cache, search, training."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F  # noqa: N812

from wxb.models.transformer import Config, Transformer, Translator, smoothed_loss

sizes = st.integers(1, 6)
seeds = st.integers(0, 999)
lengths = st.lists(st.integers(1, 6), min_size=2, max_size=2)
shapes = st.fixed_dictionaries(
    {"heads": st.integers(1, 3), "layers": st.integers(1, 3), "feed_forward": sizes}
    | {"size": st.integers(1, 3), "norm_first": st.booleans()}
)
TINY = Config(11, 13, width=8, heads=2, layers=2, feed_forward=12, dropout=0.0, max_length=24)


def ours_and_theirs(shape):
    shape = dict(shape)
    width = 2 * shape.pop("size") * shape["heads"]
    config = Config(5, 5, width=width, dropout=0.0, **shape)
    theirs = nn.Transformer(
        config.width,
        config.heads,
        config.layers,
        config.layers,
        config.feed_forward,
        dropout=0.0,
        norm_first=config.norm_first,
        batch_first=True,
        dtype=torch.float64,
    )
    for parameter in theirs.parameters():  # biases and norms that are not 0 and 1
        nn.init.normal_(parameter, std=0.5)
    ours = Transformer(config).double()
    ours.load_state_dict(theirs.state_dict(), strict=True)
    return ours, theirs


def padded(lengths, width, left):
    """Random vectors (B, T, C) of these lengths, and their mask."""
    longest = max(lengths)
    mask = torch.arange(longest) < torch.tensor(lengths)[:, None]
    mask = mask.flip(1) if left else mask
    return torch.randn(*mask.shape, width, dtype=torch.float64), mask


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")  # of torch's fast path
@given(shapes, lengths, lengths, st.booleans(), seeds)
@settings(deadline=None, max_examples=40)
def test_outputs_and_gradients_equal_torch(shape, source_lengths, target_lengths, left, seed):
    torch.manual_seed(seed)
    ours, theirs = ours_and_theirs(shape)
    (source, source_mask), (target, target_mask) = (
        padded(row_lengths, ours.encoder.norm.normalized_shape[0], left)
        for row_lengths in (source_lengths, target_lengths)
    )
    actual = ours(source, target, source_mask, target_mask)[target_mask]
    expected = theirs(
        source,
        target,
        tgt_mask=nn.Transformer.generate_square_subsequent_mask(target.shape[1]).isinf(),
        src_key_padding_mask=~source_mask,
        tgt_key_padding_mask=~target_mask,
        memory_key_padding_mask=~source_mask,
    )[target_mask]
    torch.testing.assert_close(actual, expected)
    weights = torch.linspace(-1, 1, actual.numel(), dtype=torch.float64).view_as(actual)
    slopes = []
    for model, result in ((ours, actual), (theirs, expected)):
        (result * weights).sum().backward()
        slopes.append({name: p.grad for name, p in model.named_parameters()})
    torch.testing.assert_close(*slopes)


def test_a_step_may_read_several_tokens():
    torch.manual_seed(0)
    model = Translator(TINY).double().eval()
    ids = torch.randint(3, TINY.source_size, (3, 6))
    tokens = torch.randint(3, TINY.target_size, (3, 5))
    mask = torch.arange(6) < torch.randint(1, 7, (3, 1))
    at_once, state = model.step(tokens, model.encode(ids, mask))
    _, after = model.step(tokens[:, :2], model.encode(ids, mask))
    in_parts, after = model.step(tokens[:, 2:], after)
    torch.testing.assert_close(at_once, in_parts)
    torch.testing.assert_close(state, after)


@given(st.integers(1, 4), st.integers(1, 5), st.integers(2, 9), st.floats(0, 0.9), seeds)
@settings(deadline=None, max_examples=30)
def test_the_smoothed_loss_equals_torch(rows, length, size, smoothing, seed):
    torch.manual_seed(seed)
    logits = torch.randn(rows, length, size, dtype=torch.float64, requires_grad=True)
    labels = torch.randint(size, (rows, length))
    labels[0, 0] = 1
    actual = smoothed_loss(logits, labels, smoothing=smoothing, ignored=0)
    expected = F.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=0, label_smoothing=smoothing
    )
    torch.testing.assert_close(actual, expected)
    slopes = [torch.autograd.grad(loss, logits)[0] for loss in (actual, expected)]
    torch.testing.assert_close(*slopes)


def test_the_smoothed_loss_of_padding_alone_is_zero():
    loss = smoothed_loss(torch.randn(2, 3, 5), torch.zeros(2, 3).long(), smoothing=0.1, ignored=0)
    assert loss == 0
