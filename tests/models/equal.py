"""Assertions that a native model equals its counterpart in transformers."""

import torch
from hypothesis import strategies as st

from wxb.lessons.parity import difference, gradient_difference, twin

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}
# In float32, terms that cancel leave mostly their rounding.
GRADIENT_TOLERANCE = {torch.float32: 1e-3, torch.float64: 1e-10}
dtypes = st.sampled_from([torch.float32, torch.float64])


def assert_equal(actual, expected, tolerance):
    """Compare every output of transformers, including padding."""
    compared = 0
    for name, output in expected.items():
        if isinstance(output, torch.Tensor):
            ours = getattr(actual, name)
            assert ours.shape == output.shape
            assert difference(ours, output) <= tolerance, name
            compared += 1
    assert compared


def assert_same_training(theirs, inputs, labels, tolerance):
    """Compare outputs, loss and all gradients of a batch."""
    ours, missing, unexpected = twin(theirs)
    assert (missing, unexpected) == ([], [])
    theirs.load_state_dict(ours.state_dict(), strict=True)
    actual, expected = ours(**inputs, **labels), theirs(**inputs, **labels)
    assert_equal(actual, expected, tolerance)
    theirs.zero_grad()
    for output in (actual, expected):
        output.loss.backward()
    assert gradient_difference(ours, theirs) <= max(tolerance, GRADIENT_TOLERANCE[theirs.dtype])


def padding(draw, rows, length, *, left):
    """An attention mask (B, T): every row has a token, and the first has no padding."""
    counts = [length, *(draw(st.integers(1, length)) for _ in range(rows - 1))]
    mask = (torch.arange(length) < torch.tensor(counts)[:, None]).long()
    return mask.flip(-1) if left else mask


@torch.no_grad()
def perturb(model):
    """Add noise to all parameters, as initial biases and scales are all 0 and 1."""
    for parameter in model.parameters():
        parameter += 0.1 * torch.randn_like(parameter)
    return model
