"""Backbones made: initial weights or a checkpoint's, and what pretraining makes of them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase, set_seed

from wxb.core.params.backbones import Backbone
from wxb.corpora import clean
from wxb.corpora.text.tokenizers import load
from wxb.training import pretraining, processes
from wxb.training.backbones import weights
from wxb.training.backbones.size import parameters
from wxb.training.batches import collate
from wxb.training.curves import write_curves
from wxb.training.run import TrainingRun
from wxb.training.trainer import fit

VALID_DOCUMENTS = 1000  # enough for two digits of perplexity


def make(
    backbone: Backbone,
    corpus: Path,
    tokens: Path,
    *,
    seed: int,
    unfinished: Path,
    label: str,
    model_folder: Path,
    curves: Path,
) -> dict[str, Any]:
    """Write the model with its tokenizer, and its curves; give its size, and its metrics.

    `corpus` is the folder of clean texts, `tokens` that of the tokenizer; `unfinished` holds
    checkpoints while it learns. Of several processes the first writes and gives all that.
    """
    tokenizer = load(tokens)
    set_seed(seed)
    model = weights.initial(backbone, tokenizer)
    history, metrics = pretrain(
        model, tokenizer, backbone, corpus, seed=seed, unfinished=unfinished, label=label
    )
    if processes.rank():
        return {}  # the first has the same model, and writes it
    model.save_pretrained(model_folder)
    tokenizer.save_pretrained(model_folder)
    write_curves(curves, history)
    size = {
        "parameters": parameters(weights.load_backbone(model_folder)),
        "trainable_parameters": parameters(model) if backbone.pretraining else 0,
    }
    return {**metrics, **size}


def pretrain(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    backbone: Backbone,
    corpus: Path,
    *,
    seed: int,
    unfinished: Path,
    label: str,
) -> tuple[list[dict[str, float]], dict[str, float]]:
    """Train a model in place; give its history, and its metrics on held-out documents."""
    settings = backbone.pretraining
    if settings is None:
        return [], {}
    valid_texts = clean.texts(corpus / "valid.parquet")
    stream = partial(
        pretraining.stream,
        backbone.objective,
        tokenizer=tokenizer,
        max_length=settings.max_length,
        seed=seed,
    )
    train = stream(
        texts=clean.texts(corpus / "train.parquet"),
        length=settings.steps * settings.batch_size,
        copying=settings.copying,
    )
    held_out = min(len(valid_texts), VALID_DOCUMENTS)
    valid = stream(texts=valid_texts, length=held_out)
    run = TrainingRun(
        settings,
        train=train,
        valid=valid,
        collate=partial(collate, pad=tokenizer.pad_token_id),
        seed=seed,
        checkpoints=unfinished,
        label=label,
    )
    history = fit(pretraining.Objective(model), run)
    measure = partial(
        pretraining.measure, model, pad=tokenizer.pad_token_id, batch_size=settings.batch_size
    )
    metrics = measure(valid)
    if settings.copying:
        twice = stream(texts=valid_texts, length=held_out, copying=1.0)
        metrics["copy_accuracy"] = measure(twice)["accuracy"]
    return history, metrics
