"""Assertions that a native model equals its counterpart in transformers."""

import torch
from hypothesis import strategies as st

from wxb.models import bert, gpt2, llama, whisper

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}
# In float32, terms that cancel leave mostly their rounding.
GRADIENT_TOLERANCE = {torch.float32: 1e-3, torch.float64: 1e-10}
FLOOR = 1e-2  # of the largest gradient of a model; smaller ones may be only rounding
MODULES = {"bert": bert, "gpt2": gpt2, "llama": llama, "whisper": whisper}
dtypes = st.sampled_from([torch.float32, torch.float64])


def twin(theirs):
    """Our model with the weights of theirs, and the names of missing and unexpected weights."""
    module = MODULES[theirs.config.model_type]
    ours = getattr(module, type(theirs).__name__)(module.Config.from_hf(theirs.config))
    keys = ours.to(theirs.dtype).load_state_dict(theirs.state_dict(), strict=False)
    return ours.eval(), keys.missing_keys, keys.unexpected_keys


def difference(actual, expected, minimum=0.0):
    """The largest difference over the largest entry of `expected`, which is at least `minimum`.

    It is infinite if an entry is not a number.
    """
    largest = float((actual - expected).detach().abs().nan_to_num(nan=torch.inf).max())
    return largest / max(_largest(expected), minimum) if largest else 0.0


def gradient_difference(ours, theirs):
    """The largest `difference` between the gradients of a parameter, after `backward`.

    The divisor is at least FLOOR of their largest gradient: some gradients are 0 up to rounding,
    such as that of a bias on keys, which softmax cancels.
    """
    actual, expected = (
        {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
        for model in (ours, theirs)
    )
    assert actual.keys() == expected.keys()
    minimum = FLOOR * max(map(_largest, expected.values()))
    return max(difference(actual[name], expected[name], minimum) for name in expected)


def _largest(tensor):
    return float(tensor.detach().abs().max())


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
