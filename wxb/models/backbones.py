"""Bodies of models: made from a configuration, or loaded from a folder or the hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForPreTraining,
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

POSITIONS = "bert.embeddings.position_embeddings.weight"


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
    if model.config.model_type == "bert":
        _order_positions(model.get_parameter(POSITIONS))
    return model


@torch.no_grad()
def _order_positions(table: Tensor) -> None:
    """Start BERT's learned positions (T, H) as sinusoids of the spread of its other weights.

    From random ones, "the token before" has to be learned for each position anew, which takes
    longer than all of a small run. Formula: Vaswani et al. 2017, section 3.5.
    """
    positions, width = table.shape
    angles = torch.arange(positions)[:, None] / 10_000 ** (torch.arange(0, width, 2) / width)
    spread = table.std()
    table[:, 0::2] = angles.sin()  # (T, H / 2)
    table[:, 1::2] = angles.cos()
    table *= spread / table.std()


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
