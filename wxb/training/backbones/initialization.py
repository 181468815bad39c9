"""Initial weights with some attention in place that a small run would end without.

A model that is trained for minutes spends them on finding out what stands beside what, and how to
copy. Here both start roughly right; all of it is trained on, and the architectures are BERT's and
LLaMA's own. Compare "mimetic" initialisation (Trockman and Kolter 2023) and ConViT (d'Ascoli et al.
2021).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import BertModel, LlamaModel

BERT_DISTANCES = (-1, 1, -2, 2)  # of the first heads of each layer; further heads start as usual
POSITIONS_TO_WORDS = 2.0  # spread of the position embeddings, in that of the word embeddings
FOCUS = 1.5  # sharp enough that most of the weight falls on the token meant and its neighbours


@torch.no_grad()
def initialize(model: nn.Module) -> None:
    """Change the initial weights of a BERT or LLaMA backbone; leave those of others."""
    if isinstance(model, BertModel):
        _bert(model)
    elif isinstance(model, LlamaModel):
        _llama(model)


def _bert(model: Any) -> None:
    """Attention that looks one and two tokens back and ahead, a head each, in every layer.

    BERT learns positions from nothing, and a small run ends before it has: which token stands
    before another, it would have to find out for every position. So the table of positions (T, H)
    starts as sinusoids (Vaswani et al. 2017, section 3.5), whose products depend on distance alone,
    and the queries and keys of a head as the same sinusoids, the queries' shifted by the head's
    distance.
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
            turn = frequencies[: size // 2] * distance
            sin = torch.arange(0, size - 1, 2)  # columns; the rows are those of the head
            cos = sin + 1
            rows = head * size + sin
            attention.key.weight[rows, sin] += FOCUS
            attention.key.weight[rows + 1, cos] += FOCUS
            attention.query.weight[rows, sin] += FOCUS * turn.cos()
            attention.query.weight[rows, cos] += FOCUS * turn.sin()
            attention.query.weight[rows + 1, cos] += FOCUS * turn.cos()
            attention.query.weight[rows + 1, sin] -= FOCUS * turn.sin()


CONSTANT = 0.1  # what every word embedding holds in its first place, for attention by position
LOOK = 3.0  # logits that each frequency adds where the distance is right
FAST = 0.05  # radians a token: faster rotations tell neighbours apart, slower ones hardly turn
MATCH, CARRY, COPY = 2.0, 4.0, 10.0  # strengths found by trying, of the three steps of copying


def _llama(model: Any) -> None:
    """Heads that look one and two tokens back, and one that goes on where a passage comes again.

    Rotary attention knows distances, but only between queries and keys that do not depend on the
    word; so all embeddings share a constant, from which the heads of the first group of each layer
    make theirs. The last group of the second layer copies (an "induction head", Olsson et al.
    2022): the first layer carries each token's word to the next token; a query for the current word
    finds the token after its earlier occurrence, whose word is then made likely.
    """
    shape = model.config
    groups, size = shape.num_key_value_heads, shape.head_dim
    heads = shape.num_attention_heads // groups  # in a group
    embeddings = model.embed_tokens.weight
    spread = shape.initializer_range
    width = shape.hidden_size
    embeddings[:, 0] = CONSTANT
    # The constant after the first normalisation.
    constant = CONSTANT / ((CONSTANT**2 + (width - 1) * spread**2) / width) ** 0.5
    strength = (LOOK * size**0.5) ** 0.5 / constant
    frequencies = model.rotary_emb.inv_freq
    fast, slow = (part.nonzero().squeeze(1) for part in (frequencies > FAST, frequencies <= FAST))
    for layer in model.layers:
        attention = layer.self_attn
        attention.k_proj.weight[fast, 0] = strength
        attention.k_proj.weight[fast + size // 2, 0] = 0
        for head in range(min(heads, 2)):
            turn = -(head + 1) * frequencies[fast]
            rows = head * size + fast
            attention.q_proj.weight[rows, 0] = strength * turn.cos()
            attention.q_proj.weight[rows + size // 2, 0] = strength * turn.sin()
    if len(model.layers) < 2 or width <= 2 * size:
        return  # no room to copy
    word = 1 + torch.arange(size)  # places of an embedding that stand for its word
    before = width - size + torch.arange(size)  # where the word of the token before is put
    every = torch.arange(size)
    first, second = (model.layers[i].self_attn for i in range(2))
    _only(first.v_proj.weight[:size], every, word, 1.0)
    _only(first.q_proj.weight[:size, 1:], every, word, 0.0)
    _only(first.k_proj.weight[:size, 1:], every, word, 0.0)
    _only(first.o_proj.weight[:, : heads * size], before, every, CARRY * spread)
    slow = torch.cat([slow, slow + size // 2])
    last = (groups - 1) * size  # rows of the last group's keys and values
    query = (groups - 1) * heads * size
    _only(second.q_proj.weight[query : query + size], slow, word[slow], MATCH)
    _only(second.k_proj.weight[last : last + size], slow, before[slow], MATCH)
    _only(second.v_proj.weight[last : last + size], every, word, 1.0)
    _only(second.o_proj.weight[:, query:], word, every, COPY * spread)


def _only(weight: Tensor, rows: Tensor, columns: Tensor, value: float) -> None:
    """Set these entries of a weight, and no others."""
    weight.zero_()
    weight[rows, columns] = value
