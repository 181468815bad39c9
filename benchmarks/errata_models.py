"""What the defects of the published series do to a model, measured one by one.

Each defect is put back, alone, into an architecture of ours. Weights are random but for those of
the model that learns to reverse texts, which is trained here. docs/errata.md tells what each defect
is; the published forms stand here.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from wxb.core.params import load
from wxb.lessons import parity
from wxb.lessons.parity import difference
from wxb.models import decoding, llama
from wxb.models.attention import MultiHeadAttention, softmax
from wxb.models.lstm import LSTMClassifier, without_special_tokens
from wxb.models.seq2seq import Config, Seq2Seq, State, teacher_forcing

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
console = Console(width=130)  # a table is cut nowhere, whatever the terminal

SEED = 1
PAD, EOS, VOCABULARY, LONGEST = 0, 2, 9, 5  # of texts to reverse
CLS, SEP = 1, 2  # of texts for the LSTM

# Day 12, the LSTM


def between_special_tokens(lengths: Tensor, vocabulary: int) -> tuple[Tensor, Tensor]:
    """Random texts of so many tokens (B,) between [CLS] and [SEP]: ids and mask (B, T)."""
    columns = torch.arange(int(lengths.max()) + 2)
    ids = torch.randint(SEP + 1, vocabulary, (len(lengths), len(columns)))
    ids[:, 0] = CLS
    ids = torch.where(columns == lengths[:, None] + 1, SEP, ids)
    mask = (columns < lengths[:, None] + 2).long()
    return ids * mask, mask


def outer_columns_cut(ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """As published: the first and last column of the batch are taken off, not of each row."""
    return ids[:, 1:-1], mask[:, 1:-1]


@torch.no_grad()
def separators(rows: int) -> tuple[int, float]:
    """How many rows of a batch keep [SEP], and how far that is from the logits without it."""
    torch.manual_seed(SEED)
    vocabulary = 1000
    batch = between_special_tokens(torch.randint(5, 61, (rows,)), vocabulary)
    model = LSTMClassifier(vocabulary, 2).eval()
    cut = outer_columns_cut(*batch)
    kept = int((cut[0] == SEP).any(dim=1).sum())
    expected = model(*without_special_tokens(*batch))["logits"]
    return kept, difference(model(*cut)["logits"], expected)


# Days 14 and 15, encoder and decoder


class Unmasked(Seq2Seq):
    """As published: the decoder is given no mask of the source."""

    def encode(self, input_ids: Tensor, attention_mask: Tensor) -> State:
        """The state before the first token, in which every column of the source may be seen."""
        state = super().encode(input_ids, attention_mask)
        return state._replace(seen=torch.ones_like(state.seen))


def reversals(rows: int, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Texts of 1 to LONGEST tokens, their mask, and the same backwards with EOS behind."""
    lengths = torch.randint(1, LONGEST + 1, (rows, 1), generator=generator)
    ids = torch.randint(EOS + 1, VOCABULARY, (rows, LONGEST), generator=generator)
    ids = ids * (torch.arange(LONGEST) < lengths)
    labels = torch.zeros(rows, LONGEST + 1, dtype=torch.long)
    for row, length in enumerate(lengths[:, 0].tolist()):
        labels[row, :length] = ids[row, :length].flip(0)
        labels[row, length] = EOS
    return ids, ids != PAD, labels


def reverser(*, attention: bool = True, steps: int = 200) -> Seq2Seq:
    """A small model that has learnt to reverse texts."""
    torch.manual_seed(SEED)
    model = Seq2Seq(Config(VOCABULARY, VOCABULARY, 16, 24, attention=attention, dropout=0.0))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    data, coins = (torch.Generator().manual_seed(seed) for seed in (2, 3))
    for step in range(steps):
        ids, mask, labels = reversals(48, generator=data)
        optimizer.zero_grad()
        probability = teacher_forcing(step, decay=50)
        loss = model(ids, mask, labels, teacher_forcing=probability, generator=coins)["loss"]
        loss.backward()
        optimizer.step()
    return model.eval()


def reversed_right(
    model: Seq2Seq, ids: Tensor, mask: Tensor, labels: Tensor, beams: int = 1
) -> int:
    """How many texts are reversed without a fault."""
    found = decoding.generate(model, ids, mask, beams=beams, max_new_tokens=labels.shape[1])
    found = F.pad(found, (0, labels.shape[1] - found.shape[1]))
    return int((found == labels).all(dim=1).sum())


class Padded(NamedTuple):
    """How many texts are reversed, and the share of the first look that falls on padding."""

    right: int  # without columns of padding
    masked: int  # with them
    unmasked: int  # with them, as published
    on_padding: float


@torch.no_grad()
def source_padding(model: Seq2Seq, texts: int, columns: int) -> Padded:
    """What so many columns of padding do to a model, as one long text in the batch brings them."""
    ids, mask, labels = reversals(texts, generator=torch.Generator().manual_seed(9))
    wide = F.pad(ids, (0, columns)), F.pad(mask, (0, columns))
    published = Unmasked(model.config).eval()
    published.load_state_dict(model.state_dict())
    state = published.encode(*wide)
    assert published.attention
    weights = published.attention(state.hidden, state.keys, state.seen)  # (B, S)
    return Padded(
        reversed_right(model, ids, mask, labels),
        reversed_right(model, *wide, labels),
        reversed_right(published, *wide, labels),
        float((weights * ~wide[1]).sum(dim=1).mean()),
    )


# Days 23 to 27, checkpoints that are read otherwise


@torch.no_grad()
def tiny(name: str, **settings: Any) -> tuple[Any, Any, dict[str, Tensor]]:
    """transformers' tiny random model of a parity block, ours with its weights, and a batch.

    Biases, which begin at 0, are random as well.
    """
    block = load().parity[name]
    block = block.model_copy(update={"architecture": {**(block.architecture or {}), **settings}})
    torch.manual_seed(SEED)
    theirs = parity.load(block, name)
    for key, parameter in theirs.named_parameters():
        if key.endswith(".bias"):
            nn.init.normal_(parameter, std=0.1)
    rng = torch.Generator().manual_seed(SEED)
    batch = parity.MODELS[name].batch(theirs.config, rng, False)
    return theirs, parity.twin(theirs)[0], batch


class LeftOut(NamedTuple):
    """Biases that find no place, and how far the logits are without them and with them."""

    left_out: list[str]
    without: float
    with_them: float


@torch.no_grad()
def without_biases() -> LeftOut:
    """Whisper's attention as published: no bias on q, v and out."""
    theirs, ours, batch = tiny("whisper")
    published = deepcopy(ours)
    for module in published.modules():
        if hasattr(module, "q_proj"):
            module.q_proj.bias = module.v_proj.bias = module.out_proj.bias = None
    left_out = published.load_state_dict(theirs.state_dict(), strict=False).unexpected_keys
    expected = theirs(**batch).logits
    found = (difference(model(**batch).logits, expected) for model in (published, ours))
    return LeftOut(left_out, *found)


@torch.no_grad()
def two_strides_of_2(frames: int = 3000) -> tuple[int, int]:
    """Frames behind both convolutions as published, and the positions that there are for them."""
    _, ours, _ = tiny("whisper", max_source_positions=frames // 2)
    encoder = ours.model.encoder
    encoder.conv1.stride = (2,)
    heard = encoder.conv2(encoder.conv1(torch.zeros(1, encoder.conv1.in_channels, frames)))
    return heard.shape[-1], len(encoder.embed_positions.weight)


def neighbours_rotated(vectors: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Neighbours for pairs (Su et al. 2021), which the checkpoints are not laid out for."""
    first, second = vectors[..., 0::2], vectors[..., 1::2]
    return torch.stack([first * cos - second * sin, second * cos + first * sin], dim=-1).flatten(-2)


class Rotated(NamedTuple):
    """How far the logits are with neighbours and with halves; next tokens that are others."""

    neighbours: float
    halves: float
    others: float


@torch.no_grad()
def layouts() -> Rotated:
    """LLaMA with neighbours rotated in place of halves."""
    theirs, ours, batch = tiny("llama")
    expected, right = theirs(**batch).logits, ours(**batch).logits
    with patch.object(llama, "rotate", neighbours_rotated):
        published = ours(**batch).logits
    others = (published.argmax(-1) != expected.argmax(-1)).double().mean()
    return Rotated(difference(published, expected), difference(right, expected), float(others))


def turns(size: int, theta: float) -> tuple[Tensor, Tensor]:
    """Radians a token by which each pair (D / 2,) turns: as it should be, and as published."""
    rope = {"rope_type": "default", "rope_theta": theta}
    right = llama.frequencies(llama.Config(head_dim=size, rope_parameters=rope))
    return right, theta ** (-size / (2 * torch.arange(size // 2)))  # of the first: no number


@torch.no_grad()
def other_theta(theta: float = 10_000.0) -> float:
    """How far LLaMA's logits are with the theta of another generation."""
    theirs, _, batch = tiny("llama")
    shape = llama.Config.from_hf(theirs.config)
    rope = {**shape.rope_parameters, "rope_theta": theta}
    other = llama.LlamaForCausalLM(replace(shape, rope_parameters=rope)).eval()
    other.load_state_dict(theirs.state_dict())
    return difference(other(**batch).logits, theirs(**batch).logits)


@torch.no_grad()
def always_tied() -> float:
    """How far LLaMA's logits are with a head that is the embedding, whatever the checkpoint."""
    theirs, _, batch = tiny("llama", tie_word_embeddings=False)
    shape = replace(llama.Config.from_hf(theirs.config), tie_word_embeddings=True)
    published = llama.LlamaForCausalLM(shape).eval()
    # Both names are there, so the weights load without a word, and the last loaded wins.
    published.load_state_dict(theirs.state_dict(), strict=True)
    return difference(published(**batch).logits, theirs(**batch).logits)


# Softmax and masks


def plain_softmax(scores: NDArray[np.floating]) -> NDArray[np.floating]:
    """As published: the greatest score is not subtracted first."""
    weights: NDArray[np.floating] = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
    return weights


def overflow(kind: type[np.floating]) -> int:
    """The first whole score from which on the published softmax gives NaN beside a score of 0."""
    with np.errstate(over="ignore", invalid="ignore"):
        return next(
            score
            for score in itertools.count()
            if np.isnan(plain_softmax(np.array([score, 0], kind))).any()
        )


def minus_infinity(scores: Tensor, mask: Tensor) -> Tensor:
    """As published: hidden scores are minus infinity, whatever is left to see."""
    return scores.masked_fill(~mask, -torch.inf).softmax(-1)


def spoiled(weigh: Callable[[Tensor, Tensor], Tensor]) -> int:
    """How many of an attention layer's four parameters get gradients that are NaN.

    The last text of the batch is empty, and the loss is taken over the others.
    """
    torch.manual_seed(SEED)
    layer = MultiHeadAttention(8, 2)
    mask = torch.ones(4, 1, 1, 3, dtype=torch.bool)
    mask[-1] = False
    keys, values = layer.keys_values(torch.randn(4, 3, 8))
    weighed = weigh(keys @ keys.mT, mask) @ values
    result: Tensor = layer.out_proj(weighed.transpose(1, 2).flatten(2))
    gradients = torch.autograd.grad(result[:-1].sum(), [*layer.parameters()])
    return sum(bool(gradient.isnan().any()) for gradient in gradients)


# The command


def measured() -> Iterator[tuple[str, str]]:
    """Each defect, by its title in docs/errata.md, and what it does."""
    rows, texts, columns = 32, 300, 50
    kept, moved = separators(rows)
    told = f"in {kept} of {rows} rows, whose logits are off by up to {moved:.0%} of the largest"
    yield "Day 12, BiLSTM: `[SEP]` stays in every padded row", told

    padded = source_padding(reverser(), texts, columns)
    told = f"of {texts} texts {padded.right} are reversed; with {columns} columns of padding"
    told += f" {padded.unmasked}, as {padded.on_padding:.0%} of the first look falls on it;"
    told += f" with the mask {padded.masked}"
    yield "Days 14 and 15, attention: padding is attended to", told

    biases, (heard, places) = without_biases(), two_strides_of_2()
    told = f"without {len(biases.left_out)} biases logits are off by {biases.without:.0%} of the"
    told += f" largest, with them by {biases.with_them:.1g}; {2 * places:,} frames become {heard},"
    yield "Day 23, Whisper: no biases, and one stride too many", f"{told} for {places:,} positions"

    rotated = layouts()
    told = f"logits are off by {rotated.neighbours:.0%} of the largest, {rotated.others:.0%} of the"
    told += f" next tokens are others; with halves, by {rotated.halves:.1g}"
    yield "Day 26, RoPE: two layouts of pairs", told

    right, published = turns(size=128, theta=10_000.0)
    told = f"the second pair turns by {right[1]:.3f} radians a token; as published none by more"
    told += f" than {published[1:].max():.0e}"
    yield "Day 26, RoPE: an exponent upside down", told

    told = f"with the other's theta logits are off by {other_theta():.0%} of the largest"
    yield 'Day 26, RoPE: "dynamic" LLaMA 2, "cached" LLaMA 3', told

    told = f"logits are off by {always_tied():.0%} of the largest"
    yield "Day 27, LLaMA: a head that is always tied", told

    limits = {kind.__name__: overflow(kind) for kind in (np.float32, np.float64)}
    told = " and ".join(f"{limit} in {kind}" for kind, limit in limits.items())
    yield "Encoder notebook: softmax overflows", f"NaN from a score of {told}"

    told = f"{spoiled(minus_infinity)} of 4 gradients of an attention layer are NaN for an empty"
    told += f" text in the batch; ours: {spoiled(softmax)}"
    yield "Masks: four conventions, and NaN where nothing is seen", told


@app.command()
def main() -> None:
    """Put the defects of the part "Models" of docs/errata.md back, one by one."""
    torch.set_num_threads(1)  # sums of more can differ from run to run
    table = Table("defect", "measured", show_lines=True)
    for row in measured():
        table.add_row(*row)
    console.print(table)


if __name__ == "__main__":
    app()
