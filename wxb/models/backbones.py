"""Bodies of models: made from a configuration, or loaded from a folder or the hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForPreTraining,
    BertModel,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from wxb.params import Architecture, Backbone

# The class with the heads that an objective trains; the body alone where nothing is trained.
CLASSES: dict[str, Any] = {
    "mlm+nsp": AutoModelForPreTraining,
    "causal-lm": AutoModelForCausalLM,
    "none": AutoModel,
}

# How BERT's initial attention looks around; see `_look_around`.
DISTANCES = (-1, 1, -2, 2)  # of the first heads of each layer; further heads start as usual
POSITIONS_TO_WORDS = 2.0  # spread of the position embeddings, in that of the word embeddings
FOCUS = 1.5  # sharp enough that most of the weight falls on the token meant and its neighbours


def initial(backbone: Backbone, tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    """The model that pretraining starts from: initial weights, or those of the checkpoint.

    Seed torch before: initial weights are random.
    """
    cls = CLASSES[backbone.objective]
    model: PreTrainedModel
    if backbone.checkpoint:
        model = cls.from_pretrained(backbone.checkpoint, revision=backbone.revision or "main")
        return model
    assert backbone.architecture is not None
    model = cls.from_config(_config(backbone.architecture, tokenizer))
    if isinstance(model.base_model, BertModel):
        _look_around(model.base_model)
    return model


@torch.no_grad()
def _look_around(model: BertModel) -> None:
    """Let BERT's initial attention look one and two tokens back and ahead, a head each.

    BERT learns positions from nothing: which token stands before another, it has to find out for
    every position. A small run ends before that; a decoder with rotary positions is born with it.
    So the table of positions (T, H) starts as sinusoids (Vaswani et al. 2017, section 3.5), whose
    products depend on distance alone, and the queries and keys of a head as the same sinusoids, the
    queries' shifted by the head's distance. All of it is trained on; the architecture is BERT's.
    Compare "mimetic" initialisation (Trockman and Kolter 2023) and ConViT (d'Ascoli et al. 2021).
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
        for head, distance in zip(range(model.config.num_attention_heads), DISTANCES, strict=False):
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


def _config(architecture: Architecture, tokenizer: PreTrainedTokenizerBase) -> Any:
    shape = {k: v for k, v in architecture.model_dump().items() if v is not None}
    dropout = shape.pop("dropout")
    # BERT drops hidden states too; LLaMA has dropout in attention only.
    names = {"bert": ("hidden_dropout_prob", "attention_probs_dropout_prob")}
    for name in names.get(architecture.model_type, ("attention_dropout",)):
        shape[name] = dropout
    return AutoConfig.for_model(
        **shape,
        vocab_size=len(tokenizer),
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        tie_word_embeddings=True,
    )


def body(folder: str | Path) -> PreTrainedModel:
    """The embeddings and blocks saved in a folder, without the heads of pretraining."""
    config = AutoConfig.from_pretrained(folder)
    # BERT's pooler serves NSP only; a tagger reads the tokens.
    extra = {"add_pooling_layer": False} if config.model_type == "bert" else {}
    model: PreTrainedModel = AutoModel.from_pretrained(folder, config=config, **extra)
    return model


def parameters(model: Any, *, trainable: bool = False) -> int:
    """How many numbers a model holds, or how many of them it learns; shared ones count once."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad or not trainable)
