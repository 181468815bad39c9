"""Build a backbone: pretrain it, or take the weights of its checkpoint."""

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
from wxb.training.backbones.size import parameter_count
from wxb.training.batches import collate
from wxb.training.curves import write_curves
from wxb.training.run import TrainingRun
from wxb.training.trainer import fit

VALID_DOCUMENTS = 1000  # enough for two digits of perplexity


def build(
    backbone: Backbone,
    corpus: Path,
    tokenizer_folder: Path,
    *,
    seed: int,
    checkpoints: Path,
    label: str,
    model_folder: Path,
    curves: Path,
) -> dict[str, Any]:
    """Pretrain a backbone; write the model with its tokenizer, and the training curves.

    `corpus` is the folder of clean texts; training resumes from the folder `checkpoints`. Returns
    metrics and numbers of parameters. If several processes train together, only the first writes,
    and the others return {}.
    """
    tokenizer = load(tokenizer_folder)
    set_seed(seed)
    model = weights.initial_model(backbone, tokenizer)
    history, metrics = pretrain(
        model, tokenizer, backbone, corpus, seed=seed, checkpoints=checkpoints, label=label
    )
    if processes.rank():
        return {}
    model.save_pretrained(model_folder)
    tokenizer.save_pretrained(model_folder)
    write_curves(curves, history)
    size = {
        "parameters": parameter_count(weights.load_backbone(model_folder)),
        "trainable_parameters": parameter_count(model) if backbone.pretraining else 0,
    }
    return {**metrics, **size}


def pretrain(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    backbone: Backbone,
    corpus: Path,
    *,
    seed: int,
    checkpoints: Path,
    label: str,
) -> tuple[list[dict[str, float]], dict[str, float]]:
    """Pretrain a model in place; return its history, and its metrics on held-out documents.

    Both are empty for a backbone without `pretraining`.
    """
    settings = backbone.pretraining
    if settings is None:
        return [], {}
    valid_texts = clean.input_texts(corpus / "valid.parquet")
    stream = partial(
        pretraining.stream,
        backbone.objective,
        tokenizer=tokenizer,
        max_length=settings.max_length,
        seed=seed,
    )
    train = stream(
        texts=clean.input_texts(corpus / "train.parquet"),
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
        checkpoints=checkpoints,
        label=label,
    )
    history = fit(pretraining.Objective(model), run)
    measure = partial(
        pretraining.measure, model, pad=tokenizer.pad_token_id, batch_size=settings.batch_size
    )
    metrics = measure(valid)
    if settings.copying:
        copies = stream(texts=valid_texts, length=held_out, copying=1.0)
        metrics["copy_accuracy"] = measure(copies)["accuracy"]
    return history, metrics
