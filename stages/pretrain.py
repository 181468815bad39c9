"""Pretrain one backbone on its corpus, or put the weights of its checkpoint in the same place."""

import shutil
from functools import partial
from pathlib import Path

from transformers import PreTrainedModel, PreTrainedTokenizerBase, set_seed

from stages import run
from wxb import paths
from wxb.backbones import weights
from wxb.backbones.size import parameters
from wxb.corpora import clean
from wxb.files import publish, write_json
from wxb.params import Params
from wxb.params.backbones import Backbone
from wxb.text.tokenizers import load
from wxb.training import checkpoints, pretraining
from wxb.training.batches import collate
from wxb.training.trainer import fit, write_curves

VALID_DOCUMENTS = 1000  # enough for two digits of perplexity


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
    """Train a model in place; give its history, and its figures on held-out documents."""
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
    history = fit(
        pretraining.Objective(model),
        settings,
        train=train,
        valid=valid,
        collate=partial(collate, pad=tokenizer.pad_token_id),
        targets=["labels"],
        figures=None,
        summarize=None,
        best=None,
        seed=seed,
        checkpoints=unfinished,
        label=label,
    )
    measure = partial(
        pretraining.measure, model, pad=tokenizer.pad_token_id, batch_size=settings.batch_size
    )
    figures = measure(valid)
    if settings.copying:
        twice = stream(texts=valid_texts, length=held_out, copying=1.0)
        figures["copy_accuracy"] = measure(twice)["accuracy"]
    return history, figures


def publish_vocabulary(name: str, tokenizer: PreTrainedTokenizerBase) -> None:
    """What stands for a backbone that is a tokenizer alone: no weights, and nothing learnt."""
    outputs = paths.model(name), paths.training(paths.PRETRAIN, name)
    with publish(*outputs, paths.metrics(paths.PRETRAIN, name)) as (folder, drawn, measured):
        tokenizer.save_pretrained(folder)
        drawn.mkdir(parents=True)
        write_json(measured, {"parameters": 0, "trainable_parameters": 0})


def main(params: Params, name: str) -> None:
    """Pretrain the backbone `name` of params.yaml."""
    backbone = params.named("backbones", name)
    corpus = paths.clean(backbone.corpus)
    tokens = paths.tokenizer(name)
    tokenizer = load(tokens)
    if not (backbone.architecture or backbone.checkpoint):
        publish_vocabulary(name, tokenizer)
        return
    set_seed(params.seed)
    model = weights.initial(backbone, tokenizer)
    unfinished = checkpoints.folder(
        f"pretrain@{name}",
        [backbone, params.seed, params.threads, params.portable],
        [corpus, tokens],
    )
    history, figures = pretrain(
        model,
        tokenizer,
        backbone,
        corpus,
        seed=params.seed,
        unfinished=unfinished,
        label=f"pretrain@{name}",
    )
    metrics = paths.metrics(paths.PRETRAIN, name)
    curves = paths.training(paths.PRETRAIN, name)
    with publish(paths.model(name), curves, metrics) as (folder, drawn, measured):
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        write_curves(drawn, history)
        size = {
            "parameters": parameters(weights.load_backbone(folder)),
            "trainable_parameters": parameters(model) if backbone.pretraining else 0,
        }
        write_json(measured, {**figures, **size})
    shutil.rmtree(unfinished, ignore_errors=True)


if __name__ == "__main__":
    run("pretrain", main, __doc__)
