"""Initial weights of BERT and LLaMA with attention to neighbours, and with copying.

In minutes of pretraining, a model learns little more than these. Here they are in its initial
weights, which are then trained like any others; the architectures do not change. Compare "mimetic"
initialization (Trockman and Kolter 2023) and ConViT (d'Ascoli et al. 2021).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import BertModel, LlamaModel

BERT_DISTANCES = (-1, 1, -2, 2)  # of the first heads of each layer; other heads start as usual
POSITIONS_TO_WORDS = 2.0  # standard deviation of position embeddings over that of word embeddings
FOCUS = 1.5  # puts most of the weight on the token at the distance and its neighbours


@torch.no_grad()
def initialize(model: nn.Module) -> None:
    """Change the initial weights of a BERT or LLaMA backbone in place; leave those of others."""
    if isinstance(model, BertModel):
        _bert(model)
    elif isinstance(model, LlamaModel):
        _llama(model)


def _bert(model: Any) -> None:
    """Let one head each, in every layer, attend one and two tokens back and ahead.

    The table of positions (T, H) starts as sinusoids (Vaswani et al. 2017, section 3.5), whose
    products depend on distance alone. The queries and keys of a head start as the same sinusoids,
    with the queries shifted by the distance of the head. BERT's random table would have to learn
    each position separately.
    """
    table = model.embeddings.position_embeddings.weight
    positions, width = table.shape
    frequencies = 10_000 ** (-torch.arange(0, width, 2) / width)
    angles = torch.arange(positions)[:, None] * frequencies  # (T, H / 2)
    table[:, 0::2] = angles.sin()
    table[:, 1::2] = angles.cos()
    table *= POSITIONS_TO_WORDS * model.embeddings.word_embeddings.weight.std() / table.std()
    size = width // model.config.num_attention_heads
    # A rotation of each (sin, cos) pair by its frequency times the distance.
    for layer in model.encoder.layer:
        attention = layer.attention.self
        for head, distance in zip(
            range(model.config.num_attention_heads), BERT_DISTANCES, strict=False
        ):
            angle = frequencies[: size // 2] * distance
            sin = torch.arange(0, size - 1, 2)  # columns; the rows are those of the head
            cos = sin + 1
            rows = head * size + sin
            attention.key.weight[rows, sin] += FOCUS
            attention.key.weight[rows + 1, cos] += FOCUS
            attention.query.weight[rows, sin] += FOCUS * angle.cos()
            attention.query.weight[rows, cos] += FOCUS * angle.sin()
            attention.query.weight[rows + 1, cos] += FOCUS * angle.cos()
            attention.query.weight[rows + 1, sin] -= FOCUS * angle.sin()


CONSTANT = 0.1  # first entry of every word embedding, for attention by position
LOOK = 3.0  # logits that each frequency adds at the right distance
FAST = 0.05  # radians a token: slower rotations hardly distinguish neighbours
MATCH, CARRY, COPY = 2.0, 4.0, 10.0  # strengths of the three steps of copying, chosen by trial


def _llama(model: Any) -> None:
    """Let heads attend one and two tokens back, and one group copy repeated passages.

    Rotary attention depends on distance alone if queries and keys do not depend on the word. So
    all embeddings share a constant, from which the first heads of each layer compute theirs. The
    last group of the second layer copies (an "induction head", Olsson et al. 2022). The first layer
    carries each word to the next token. The query for the current word then finds the token after
    its earlier occurrence, and that word becomes likely.
    """
    shape = model.config
    groups, size = shape.num_key_value_heads, shape.head_dim
    heads = shape.num_attention_heads // groups  # in a group
    embeddings = model.embed_tokens.weight
    std = shape.initializer_range
    width = shape.hidden_size
    embeddings[:, 0] = CONSTANT
    # The constant after the first norm.
    constant = CONSTANT / ((CONSTANT**2 + (width - 1) * std**2) / width) ** 0.5
    strength = (LOOK * size**0.5) ** 0.5 / constant
    frequencies = model.rotary_emb.inv_freq
    fast, slow = (part.nonzero().squeeze(1) for part in (frequencies > FAST, frequencies <= FAST))
    for layer in model.layers:
        attention = layer.self_attn
        attention.k_proj.weight[fast, 0] = strength
        attention.k_proj.weight[fast + size // 2, 0] = 0
        for head in range(min(heads, 2)):
            angle = -(head + 1) * frequencies[fast]
            rows = head * size + fast
            attention.q_proj.weight[rows, 0] = strength * angle.cos()
            attention.q_proj.weight[rows + size // 2, 0] = strength * angle.sin()
    if len(model.layers) < 2 or width <= 2 * size:
        return  # no room to copy
    word = 1 + torch.arange(size)  # entries of an embedding that represent its word
    previous = width - size + torch.arange(size)  # entries for the word of the previous token
    entries = torch.arange(size)
    first, second = (model.layers[i].self_attn for i in range(2))
    _set_only(first.v_proj.weight[:size], entries, word, 1.0)
    _set_only(first.q_proj.weight[:size, 1:], entries, word, 0.0)
    _set_only(first.k_proj.weight[:size, 1:], entries, word, 0.0)
    _set_only(first.o_proj.weight[:, : heads * size], previous, entries, CARRY * std)
    slow = torch.cat([slow, slow + size // 2])
    last = (groups - 1) * size  # rows of the last group's keys and values
    query = (groups - 1) * heads * size
    _set_only(second.q_proj.weight[query : query + size], slow, word[slow], MATCH)
    _set_only(second.k_proj.weight[last : last + size], slow, previous[slow], MATCH)
    _set_only(second.v_proj.weight[last : last + size], entries, word, 1.0)
    _set_only(second.o_proj.weight[:, query:], word, entries, COPY * std)


def _set_only(weight: Tensor, rows: Tensor, columns: Tensor, value: float) -> None:
    """Set these entries of a weight, and all others to 0."""
    weight.zero_()
    weight[rows, columns] = value
