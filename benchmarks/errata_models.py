"""Measure the effect of each defect of the published series on a model.

Each defect is restored, alone, in a native architecture. Weights are random, except those of the
model that reverses texts, which is trained here. docs/errata.md describes the defects; the
published forms are in this script.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from unittest.mock import patch

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    WhisperConfig,
    WhisperForConditionalGeneration,
)

from wxb.models import decoding, llama, whisper
from wxb.models.attention import MultiHeadAttention, softmax
from wxb.models.lstm import LSTMClassifier
from wxb.models.seq2seq import Config, Seq2Seq, State, teacher_forcing
from wxb.project import benchmarks

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)

SEED = 1
PAD, EOS, VOCABULARY, LONGEST = 0, 2, 9, 5  # of texts to reverse
CLS, SEP = 1, 2  # of texts for the LSTM

# Day 12, the LSTM


def between_special_tokens(lengths: Tensor, vocabulary: int) -> tuple[Tensor, Tensor]:
    """Random texts of these lengths (B,) between [CLS] and [SEP]: ids and mask (B, T)."""
    columns = torch.arange(int(lengths.max()) + 2)
    ids = torch.randint(SEP + 1, vocabulary, (len(lengths), len(columns)))
    ids[:, 0] = CLS
    ids = torch.where(columns == lengths[:, None] + 1, SEP, ids)
    mask = (columns < lengths[:, None] + 2).long()
    return ids * mask, mask


def without_outer_columns(ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """As published: remove the first and last column of the batch, not of each row."""
    return ids[:, 1:-1], mask[:, 1:-1]


def without_special_tokens(input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
    """Ids and mask (B, T - 2) without the first and last token of each row: [CLS] and [SEP].

    Rows are padded on the right.
    """
    return input_ids[:, 1:-1], attention_mask[:, 2:]


@torch.no_grad()
def separators(rows: int) -> tuple[int, float]:
    """Number of rows that keep [SEP], and the difference from the logits without it."""
    torch.manual_seed(SEED)
    vocabulary = 1000
    batch = between_special_tokens(torch.randint(5, 61, (rows,)), vocabulary)
    model = LSTMClassifier(vocabulary, 2).eval()
    published = without_outer_columns(*batch)
    with_separator = int((published[0] == SEP).any(dim=1).sum())
    expected = model(*without_special_tokens(*batch))["logits"]
    return with_separator, difference(model(*published)["logits"], expected)


# Days 14 and 15, encoder and decoder


class Unmasked(Seq2Seq):
    """As published: the decoder has no mask of the source."""

    def encode(self, input_ids: Tensor, attention_mask: Tensor) -> State:
        """Encode the source; the state has a mask without padding."""
        state = super().encode(input_ids, attention_mask)
        return state._replace(source_mask=torch.ones_like(state.source_mask))


def reversals(rows: int, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Texts of 1 to LONGEST tokens, their mask, and the same in reverse with EOS."""
    lengths = torch.randint(1, LONGEST + 1, (rows, 1), generator=generator)
    ids = torch.randint(EOS + 1, VOCABULARY, (rows, LONGEST), generator=generator)
    ids = ids * (torch.arange(LONGEST) < lengths)
    labels = torch.zeros(rows, LONGEST + 1, dtype=torch.long)
    for row, length in enumerate(lengths[:, 0].tolist()):
        labels[row, :length] = ids[row, :length].flip(0)
        labels[row, length] = EOS
    return ids, ids != PAD, labels


def reverser(*, attention: bool = True, steps: int = 200) -> Seq2Seq:
    """Train a small model to reverse texts."""
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


def correct_reversals(
    model: Seq2Seq, ids: Tensor, mask: Tensor, labels: Tensor, beams: int = 1
) -> int:
    """Number of texts that a model reverses correctly."""
    options = {"beams": beams, "max_new_tokens": labels.shape[1]}
    generated = decoding.search_targets(model, ids, mask, **options).tokens[:, 0]
    generated = F.pad(generated, (0, labels.shape[1] - generated.shape[1]))
    return int((generated == labels).all(dim=1).sum())


class Padded(NamedTuple):
    """Numbers of correctly reversed texts, and the share of the first attention on padding."""

    right: int  # without columns of padding
    masked: int  # with padding
    unmasked: int  # with padding, as published
    on_padding: float


@torch.no_grad()
def source_padding(model: Seq2Seq, texts: int, columns: int) -> Padded:
    """Measure the effect of columns of padding, which a long text in the batch would add."""
    ids, mask, labels = reversals(texts, generator=torch.Generator().manual_seed(9))
    wide = F.pad(ids, (0, columns)), F.pad(mask, (0, columns))
    published = Unmasked(model.config).eval()
    published.load_state_dict(model.state_dict())
    state = published.encode(*wide)
    assert published.attention
    weights = published.attention(state.hidden, state.keys, state.source_mask)  # (B, S)
    return Padded(
        correct_reversals(model, ids, mask, labels),
        correct_reversals(model, *wide, labels),
        correct_reversals(published, *wide, labels),
        float((weights * ~wide[1]).sum(dim=1).mean()),
    )


# Days 23 to 27, checkpoints


TINY = {
    "llama": LlamaConfig(
        vocab_size=500,
        hidden_size=64,
        intermediate_size=176,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        initializer_range=0.2,  # large, so that attention and generated ids differ
        rope_parameters={  # scaled as in Llama 3.1, from 12 tokens
            "rope_type": "llama3",
            "rope_theta": 500_000.0,
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 12,
        },
    ),
    "whisper": WhisperConfig(
        vocab_size=500,
        num_mel_bins=16,
        d_model=64,
        encoder_layers=2,
        encoder_attention_heads=4,
        encoder_ffn_dim=128,
        decoder_layers=2,
        decoder_attention_heads=4,
        decoder_ffn_dim=128,
        max_source_positions=50,
        max_target_positions=64,
        init_std=0.2,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
    ),
}


def twin(theirs: Any) -> Any:
    """Our model with the weights of a model of transformers."""
    module: Any = {"llama": llama, "whisper": whisper}[theirs.config.model_type]
    ours = getattr(module, type(theirs).__name__)(module.Config.from_hf(theirs.config))
    ours.load_state_dict(theirs.state_dict())
    return ours.eval()


def difference(actual: Tensor, expected: Tensor) -> float:
    """The largest difference between two tensors, over the largest entry of the second."""
    return float((actual - expected).abs().max() / expected.abs().max())


@torch.no_grad()
def tiny(name: str, **settings: Any) -> tuple[Any, Any, dict[str, Tensor]]:
    """A tiny model of transformers with random weights and biases, ours with them, and a batch."""
    config = deepcopy(TINY[name])
    config.update(settings)
    torch.manual_seed(SEED)
    is_whisper = name == "whisper"
    theirs = (WhisperForConditionalGeneration if is_whisper else LlamaForCausalLM)(config).eval()
    for key, parameter in theirs.named_parameters():
        if key.endswith(".bias"):
            nn.init.normal_(parameter, std=0.1)
    rng = torch.Generator().manual_seed(SEED)
    ids = torch.randint(config.vocab_size, (3, 12), generator=rng)
    if not is_whisper:
        return theirs, twin(theirs), {"input_ids": ids}
    audio = (3, config.num_mel_bins, 2 * config.max_source_positions)
    features = torch.randn(*audio, generator=rng)
    ids[0, 0] = config.decoder_start_token_id
    return theirs, twin(theirs), {"input_features": features, "decoder_input_ids": ids}


class Biases(NamedTuple):
    """Names of unused biases, and the differences of logits without and with them."""

    unused: list[str]
    without: float
    with_them: float


@torch.no_grad()
def without_biases() -> Biases:
    """Measure Whisper's attention as published: no bias on q, v and out."""
    theirs, ours, batch = tiny("whisper")
    published = deepcopy(ours)
    for module in published.modules():
        if hasattr(module, "q_proj"):
            module.q_proj.bias = module.v_proj.bias = module.out_proj.bias = None
    unused = published.load_state_dict(theirs.state_dict(), strict=False).unexpected_keys
    expected = theirs(**batch).logits
    differences = (difference(model(**batch).logits, expected) for model in (published, ours))
    return Biases(unused, *differences)


@torch.no_grad()
def two_strides_of_2(frames: int = 3000) -> tuple[int, int]:
    """Frames after both convolutions as published, and the number of positions."""
    _, ours, _ = tiny("whisper", max_source_positions=frames // 2)
    encoder = ours.model.encoder
    encoder.conv1.stride = (2,)
    output = encoder.conv2(encoder.conv1(torch.zeros(1, encoder.conv1.in_channels, frames)))
    return output.shape[-1], len(encoder.embed_positions.weight)


def rotate_neighbours(vectors: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate neighbours (Su et al. 2021), unlike the layout of the checkpoints."""
    first, second = vectors[..., 0::2], vectors[..., 1::2]
    return torch.stack([first * cos - second * sin, second * cos + first * sin], dim=-1).flatten(-2)


class Rotated(NamedTuple):
    """Differences of logits with both layouts, and the share of changed next tokens."""

    neighbours: float
    halves: float
    changed: float


@torch.no_grad()
def layouts() -> Rotated:
    """Measure LLaMA with neighbours rotated instead of halves."""
    theirs, ours, batch = tiny("llama")
    expected, right = theirs(**batch).logits, ours(**batch).logits
    with patch.object(llama, "rotate", rotate_neighbours):
        published = ours(**batch).logits
    changed = (published.argmax(-1) != expected.argmax(-1)).double().mean()
    return Rotated(difference(published, expected), difference(right, expected), float(changed))


def turns(size: int, theta: float) -> tuple[Tensor, Tensor]:
    """RoPE frequencies of each pair (D / 2,): right, and as published."""
    rope = {"rope_type": "default", "rope_theta": theta}
    right = llama.frequencies(llama.Config(head_dim=size, rope_parameters=rope))
    return right, theta ** (-size / (2 * torch.arange(size // 2)))  # the first is not a number


@torch.no_grad()
def other_theta(theta: float = 10_000.0) -> float:
    """The difference of LLaMA's logits with the theta of another generation."""
    theirs, _, batch = tiny("llama")
    shape = llama.Config.from_hf(theirs.config)
    rope = {**shape.rope_parameters, "rope_theta": theta}
    model = llama.LlamaForCausalLM(replace(shape, rope_parameters=rope)).eval()
    model.load_state_dict(theirs.state_dict())
    return difference(model(**batch).logits, theirs(**batch).logits)


@torch.no_grad()
def always_tied() -> float:
    """The difference of LLaMA's logits with a tied head for an untied checkpoint."""
    theirs, _, batch = tiny("llama", tie_word_embeddings=False)
    shape = replace(llama.Config.from_hf(theirs.config), tie_word_embeddings=True)
    published = llama.LlamaForCausalLM(shape).eval()
    # Both names exist, so the weights load without an error, and the last loaded one is used.
    published.load_state_dict(theirs.state_dict(), strict=True)
    return difference(published(**batch).logits, theirs(**batch).logits)


# Softmax and masks


def plain_softmax(scores: NDArray[np.floating]) -> NDArray[np.floating]:
    """As published: the maximum is not subtracted first."""
    weights: NDArray[np.floating] = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
    return weights


def overflow(kind: type[np.floating]) -> int:
    """The smallest integer score for which the published softmax of it and 0 has a NaN."""
    with np.errstate(over="ignore", invalid="ignore"):
        return next(
            score
            for score in itertools.count()
            if np.isnan(plain_softmax(np.array([score, 0], kind))).any()
        )


def minus_infinity(scores: Tensor, mask: Tensor) -> Tensor:
    """As published: masked scores are minus infinity, even if every key is masked."""
    return scores.masked_fill(~mask, -torch.inf).softmax(-1)


def nan_gradients(weigh: Callable[[Tensor, Tensor], Tensor]) -> int:
    """Number of the four parameters of an attention layer with a gradient that has a NaN.

    The last text of the batch is empty; the loss is that of the others.
    """
    torch.manual_seed(SEED)
    layer = MultiHeadAttention(8, 2)
    mask = torch.ones(4, 1, 1, 3, dtype=torch.bool)
    mask[-1] = False
    keys, values = layer.keys_values(torch.randn(4, 3, 8))
    attended = weigh(keys @ keys.mT, mask) @ values
    result: Tensor = layer.out_proj(attended.transpose(1, 2).flatten(2))
    gradients = torch.autograd.grad(result[:-1].sum(), [*layer.parameters()])
    return sum(bool(gradient.isnan().any()) for gradient in gradients)


# The command


def measure() -> Iterator[tuple[str, str]]:
    """Measure each defect; yields its title in docs/errata.md, and its effect."""
    rows, texts, columns = 32, 300, 50
    with_separator, change = separators(rows)
    effect = f"in {with_separator} of {rows} rows, whose logits differ by up to {change:.0%} of the"
    yield "Day 12, BiLSTM: `[SEP]` stays in every padded row", f"{effect} largest"

    padded = source_padding(reverser(), texts, columns)
    effect = f"{padded.right} of {texts} texts are reversed; with {columns} columns of padding"
    effect += f" {padded.unmasked}, as {padded.on_padding:.0%} of the first attention is on it;"
    effect += f" with the mask {padded.masked}"
    yield "Days 14 and 15, attention: padding is attended to", effect

    biases, (frames, positions) = without_biases(), two_strides_of_2()
    effect = f"without {len(biases.unused)} biases logits differ by {biases.without:.0%} of the"
    effect += f" largest, with them by {biases.with_them:.1g}; {2 * positions:,} frames become"
    effect += f" {frames}, for {positions:,} positions"
    yield "Day 23, Whisper: no biases, and one stride too many", effect

    rotated = layouts()
    effect = f"logits differ by {rotated.neighbours:.0%} of the largest, {rotated.changed:.0%} of"
    effect += f" the next tokens change; with halves, by {rotated.halves:.1g}"
    yield "Day 26, RoPE: two layouts of pairs", effect

    right, published = turns(size=128, theta=10_000.0)
    effect = f"the second pair turns by {right[1]:.3f} radians a token; as published, none by more"
    effect += f" than {published[1:].max():.0e}"
    yield "Day 26, RoPE: an exponent upside down", effect

    effect = f"with the theta of the other, logits differ by {other_theta():.0%} of the largest"
    yield 'Day 26, RoPE: "dynamic" LLaMA 2, "cached" LLaMA 3', effect

    effect = f"logits differ by {always_tied():.0%} of the largest"
    yield "Day 27, LLaMA: a head that is always tied", effect

    limits = {kind.__name__: overflow(kind) for kind in (np.float32, np.float64)}
    effect = " and ".join(f"{limit} in {kind}" for kind, limit in limits.items())
    yield "Encoder notebook: softmax overflows", f"NaN from a score of {effect}"

    effect = f"{nan_gradients(minus_infinity)} of 4 gradients of an attention layer are NaN for an"
    effect += f" empty text in the batch; ours: {nan_gradients(softmax)}"
    yield "Masks: four conventions, and NaN where nothing is seen", effect


@app.command()
def main(
    output: Annotated[Path | None, typer.Option(help="JSON file for the table")] = None,
) -> None:
    """Restore the defects of the section "Models" of docs/errata.md, one by one."""
    torch.set_num_threads(1)  # with more threads, sums differ from run to run
    rows = [{"defect": defect, "effect": effect} for defect, effect in measure()]
    benchmarks.report(rows, output)


if __name__ == "__main__":
    benchmarks.run(app)
