"""Assertions that a native model equals its counterpart in transformers."""

import torch
from hypothesis import strategies as st

from wxb.models import bert, gpt2, llama, whisper

MODULES = {"bert": bert, "gpt2": gpt2, "llama": llama, "whisper": whisper}
TERMS, DEPTH = 128, 32  # the models of the tests have at most 3 layers, of width 108
dtypes = st.sampled_from([torch.float32, torch.float64])


def tolerance(dtype):
    """Bound on the difference of two results of a model, as a share of the largest entry.

    A sum of n products errs by at most n u of the sum of their sizes, where u is the unit roundoff,
    half of eps (Higham 2002, section 3.1). Here n is at most TERMS, and a result is at most DEPTH
    sums behind the inputs: 8 a layer, 3 layers, embeddings and head. Two computations that add in
    another order both err. So they differ by at most 2 u TERMS DEPTH, if layers keep sizes.
    """
    return TERMS * DEPTH * torch.finfo(dtype).eps


SINGLE = tolerance(torch.float32)


def twin(theirs):
    """Our model with the weights of theirs, and the names of missing and unexpected weights."""
    module = MODULES[theirs.config.model_type]
    ours = getattr(module, type(theirs).__name__)(module.Config.from_hf(theirs.config))
    keys = ours.to(theirs.dtype).load_state_dict(theirs.state_dict(), strict=False)
    return ours.eval(), keys.missing_keys, keys.unexpected_keys


def difference(actual, expected):
    """The largest difference, infinite for NaN, over the largest entry, of lists of tensors."""
    actual, expected = (
        torch.cat([tensor.detach().flatten() for tensor in tensors])
        for tensors in (actual, expected)
    )
    largest = float((actual - expected).abs().nan_to_num(nan=torch.inf).max())
    return largest / float(expected.abs().max()) if largest else 0.0


def assert_equal(actual, expected, limit):
    """Compare every output of transformers, including padding."""
    compared = 0
    for name, output in expected.items():
        if isinstance(output, torch.Tensor):
            ours = getattr(actual, name)
            assert ours.shape == output.shape
            assert difference([ours], [output]) <= limit, name
            compared += 1
    assert compared


def assert_same_training(theirs, inputs, labels, limit):
    """Compare outputs, loss and all gradients of a batch."""
    ours, missing, unexpected = twin(theirs)
    assert (missing, unexpected) == ([], [])
    actual, expected = ours(**inputs, **labels), theirs(**inputs, **labels)
    assert_equal(actual, expected, limit)
    theirs.zero_grad()
    gradients = []
    for model, output in ((ours, actual), (theirs, expected)):
        output.loss.backward()
        named = model.named_parameters()
        gradients.append({name: p.grad for name, p in named if p.grad is not None})
    assert gradients[0].keys() == gradients[1].keys()
    # Terms of a gradient are as large as those of others, even if they cancel.
    by_name = [[part[name] for name in sorted(part)] for part in gradients]
    assert difference(*by_name) <= 2 * limit  # backward is as deep again


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
