"""What it means for a model of ours to equal transformers'."""

import torch
from hypothesis import strategies as st

from wxb.lessons.parity import difference, gradient_difference, twin

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}
# In float32, what is left of larger terms that cancel is mostly their rounding.
OF_GRADIENTS = {torch.float32: 1e-3, torch.float64: 1e-10}
dtypes = st.sampled_from([torch.float32, torch.float64])


def assert_equal(found, expected, tolerance):
    """Every output of theirs, at padding as well."""
    compared = 0
    for name, output in expected.items():
        if isinstance(output, torch.Tensor):
            ours = getattr(found, name)
            assert ours.shape == output.shape
            assert difference(ours, output) <= tolerance, name
            compared += 1
    assert compared


def assert_same_learning(theirs, inputs, labels, tolerance):
    """Outputs, loss and all gradients of a batch."""
    ours, missing, unexpected = twin(theirs)
    assert (missing, unexpected) == ([], [])
    theirs.load_state_dict(ours.state_dict(), strict=True)
    found, expected = ours(**inputs, **labels), theirs(**inputs, **labels)
    assert_equal(found, expected, tolerance)
    theirs.zero_grad()
    for output in (found, expected):
        output.loss.backward()
    assert gradient_difference(ours, theirs) <= max(tolerance, OF_GRADIENTS[theirs.dtype])


def padded(draw, rows, length, *, left):
    """An attention mask (B, T): every row has a token at least, and the first has no padding."""
    counts = [length, *(draw(st.integers(1, length)) for _ in range(rows - 1))]
    mask = (torch.arange(length) < torch.tensor(counts)[:, None]).long()
    return mask.flip(-1) if left else mask


@torch.no_grad()
def shaken(model):
    """The model with biases and scales that are not all 0 and 1, as initial ones are."""
    for parameter in model.parameters():
        parameter += 0.1 * torch.randn_like(parameter)
    return model
