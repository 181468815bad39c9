"""Defects of the published series in training: train both forms with the same seeds."""

from __future__ import annotations

import wxb  # silences the libraries that are imported below  # noqa: F401

# isort: split

import io
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import torch
from errata_scoring import Pair, above, f1_of
from numpy.typing import NDArray
from torch import Tensor
from transformers import set_seed

from wxb import tasks
from wxb.core import paths
from wxb.core.files import read_json
from wxb.core.params import Params
from wxb.corpora import clean
from wxb.corpora.records import Record
from wxb.corpora.text.encoded import IGNORED
from wxb.corpora.text.tokenizers import load as load_tokenizer
from wxb.tasks.ner.metrics import counts
from wxb.tasks.ner.models.bio import OUTSIDE
from wxb.tasks.ner.record import LABELLING
from wxb.tasks.ner.tagging import TaggingMethod
from wxb.training.backbones import tuning
from wxb.training.backbones.tuning import add_noise
from wxb.training.batches import FILL, collate
from wxb.training.trainer import fit

NEFTUNE = 5.0  # alpha of the series

Item = dict[str, NDArray[Any]]


def padded_to(length: int, outside: int, items: Sequence[Item], *, pad: int) -> dict[str, Tensor]:
    """A batch of `length` columns, with the target `outside` for padding."""
    batch = collate(items, pad)
    fill = {**FILL, "input_ids": pad} | dict.fromkeys(TaggingMethod.TARGETS, outside)
    is_padding = batch["attention_mask"] == 0
    for name in TaggingMethod.TARGETS:
        batch[name] = batch[name].masked_fill(is_padding, outside)
    columns, pad_to = length - is_padding.shape[1], torch.nn.functional.pad
    return {
        name: pad_to(rows, (0, 0) * (rows.ndim - 2) + (0, columns), value=fill[name])
        for name, rows in batch.items()
    }


def over_the_prompt(item: Item) -> Item:
    """The item with a loss over its prompt too, except the first token."""
    labels = item["input_ids"].astype(item["labels"].dtype)
    return {**item, "labels": np.concatenate([[IGNORED], labels[1:]]).astype(labels.dtype)}


def noisy_by_padding(
    embeddings: Tensor, attention_mask: Tensor, alpha: float, *, padded: bool = True
) -> Tensor:
    """NEFTune noise with the padded length as L, on tokens and padding."""
    return add_noise(embeddings, torch.ones_like(attention_mask), alpha)


class Form(NamedTuple):
    """One form of training; the defaults are those of the project."""

    batch: Callable[..., dict[str, Tensor]] = collate
    item: Callable[[Item], Item] | None = None
    noise: Callable[..., Tensor] | None = None
    alpha: float | None = None


def training_pairs(
    params: Params, records: Sequence[Record], names: Mapping[str, str], limit: int, seeds: int
) -> Iterator[Pair]:
    """Train both forms of each defect; `names` are experiments by method."""
    comparisons: list[tuple[str, str, Form, Form]] = []
    if name := names.get("tagging"):
        length = params.experiments[name].encoding.max_length
        right, published = (partial(padded_to, length, fill) for fill in (IGNORED, OUTSIDE))
        comparisons.append(("padding is labelled O", name, Form(right), Form(published)))
        defect = "NEFTune's noise by the padded length"
        by_row = Form(batch=right, alpha=NEFTUNE)
        by_padding = by_row._replace(noise=noisy_by_padding)
        comparisons.append((defect, name, by_row, by_padding))
    if name := names.get("generation"):
        comparisons.append(("loss over the prompt", name, Form(), Form(item=over_the_prompt)))
    texts, gold = [r.input for r in records], [r.gold or () for r in records]
    for defect, name, *forms in comparisons:
        tables = []
        for form in forms:
            for seed in range(params.seed, params.seed + seeds):
                predictor = train(params, name, form, limit, seed)
                label = f"{defect}: seed {seed}"
                tables.append(counts(gold, above(0, predictor.scored_spans(texts, caption=label))))
        right_of, published_of = tables[:seeds], tables[seeds:]
        differences = ", ".join(
            f"{f1_of(p) - f1_of(r):+.3f}" for r, p in zip(right_of, published_of, strict=True)
        )
        note = f"trained on {limit} windows of text; difference with each seed: {differences}"
        sums = [{key: sum(t[key] for t in of) for key in of[0]} for of in (right_of, published_of)]
        yield Pair(defect, name, *sums, note)


def train(params: Params, name: str, form: Form, limit: int, seed: int) -> Any:
    """Train one form of an experiment on its first `limit` windows; returns the predictor."""
    experiment = params.experiments[name]
    if form.alpha:
        tuning_settings = experiment.tuning.model_copy(update={"neftune_alpha": form.alpha})
        experiment = experiment.model_copy(update={"tuning": tuning_settings})
    backbone, targets = paths.MODELS / experiment.backbone, paths.TARGETS / name
    corpus = paths.CLEAN / experiment.corpus / paths.TRAINING_DATA
    labels = read_json(corpus / paths.LABELS)
    method_class: Any = tasks.get(experiment.task).method(experiment.method)
    method = method_class(experiment, labels, load_tokenizer(backbone))
    set_seed(seed)
    model = method.new_model(backbone)
    items = {}
    for split, size in (("train", limit), ("valid", max(1, limit // 8))):
        items[split] = method.items(
            paths.FEATURES / name / f"{split}.arrow",
            targets / f"{split}.arrow",
            clean.read_labelled(corpus / f"{split}.parquet", LABELLING),
        )[:size]
    if form.item:
        items["train"] = [form.item(item) for item in items["train"]]
    noise: AbstractContextManager[Any] = nullcontext()
    if form.noise:
        noise = patch.object(tuning, "add_noise", form.noise)
    log = redirect_stdout(io.StringIO())
    with tempfile.TemporaryDirectory() as folder, noise, log:
        fit(
            model,
            experiment.training,
            **items,
            collate=partial(form.batch, pad=method.tokenizer.pad_token_id),
            seed=seed,
            checkpoints=Path(folder),
            caption=f"{name}: seed {seed}",
            targets=method.TARGETS,
            metric=method.METRIC,
            compute_metrics=lambda r: method.compute_metrics(r.predictions, r.label_ids),
            summarize=method.summarize,
        )
    return method.predictor(model, targets / "train.arrow")
