"""Time training a model of each task with this project and with transformers' Trainer.

Both start from the same weights and read the same items. Ours validates, saves the best epoch and
groups texts by length; the peer is `transformers.Trainer` with its default settings, which does
none of these.
"""

from __future__ import annotations

import contextlib
import gc
import io
import tempfile
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from timing import Comparison, compare
from tokenize_align import demo_records
from transformers import Trainer, TrainingArguments, set_seed

from wxb import tasks
from wxb.core.params import load
from wxb.corpora.records import Record
from wxb.corpora.text.encoded import write_columns
from wxb.corpora.text.tokenizers import train as train_tokenizer
from wxb.training import trainer
from wxb.training.backbones.weights import initial_model
from wxb.training.batches import collate

ROOT = Path(__file__).parents[2]
GOAL = 1.3  # how many times as fast as the peer


@dataclass
class Demo:
    """A method with its backbone and items."""

    method: Any  # of wxb/tasks/<task>
    backbone: Path  # a folder
    train: Sequence[Any]
    valid: Sequence[Any]
    records: Sequence[Record] = ()

    def fit(self, model: Any, folder: Path, epochs: int) -> None:
        """Train a model with this project."""
        settings = self.method.experiment.training.model_copy(update={"epochs": epochs})
        method = self.method
        with contextlib.redirect_stdout(io.StringIO()):
            trainer.fit(
                model,
                settings,
                self.train,
                self.valid,
                collate=partial(collate, pad=method.tokenizer.pad_token_id),
                seed=1,
                checkpoints=folder / "checkpoints",
                caption="train",
                targets=method.TARGETS,
                metric=method.METRIC,
                compute_metrics=lambda r: method.compute_metrics(r.predictions, r.label_ids),
                summarize=method.summarize,
            )

    def fit_plainly(self, model: Any, folder: Path) -> None:
        """Train a model for one epoch with transformers' Trainer at its defaults."""
        settings = self.method.experiment.training
        arguments = TrainingArguments(
            output_dir=str(folder),
            num_train_epochs=1,
            per_device_train_batch_size=settings.batch_size,
            learning_rate=settings.learning_rate,
            save_strategy="no",  # the Trainer cannot save shared weights of our models
            remove_unused_columns=False,
            label_names=list(self.method.TARGETS),
            use_cpu=not torch.cuda.is_available(),
            disable_tqdm=True,
            report_to="none",
        )
        with contextlib.redirect_stdout(io.StringIO()):
            padded = partial(collate, pad=self.method.tokenizer.pad_token_id)
            Trainer(model, arguments, padded, self.train).train()


def demo(folder: Path, count: int, experiment: str = "ner-encoder", **shape: Any) -> Demo:
    """A tagger without pretraining, and records like the demo's; a tenth of its items validates."""
    params = load(ROOT / "params.yaml")
    block = params.block("experiments", experiment)
    backbone = params.block("backbones", block.backbone)
    architecture = backbone.architecture.model_copy(update=shape)
    backbone = backbone.model_copy(update={"architecture": architecture})
    records = demo_records(count)
    texts = [record.input for record in records]
    tokenizer = train_tokenizer(backbone.tokenizer.kind, backbone.tokenizer.vocabulary, texts)
    set_seed(1)
    initial_model(backbone, tokenizer).save_pretrained(folder / "backbone")
    tokenizer.save_pretrained(folder / "backbone")
    labels = sorted({span.type for record in records for span in record.gold})
    method = tasks.get(block.task).method(block.method)(block, labels, tokenizer)
    method.encode([records], folder / "features", caption="tokenize")
    columns, row_splits, _ = method.targets(folder / "features", [records])
    write_columns(folder / "targets", columns, row_splits)
    items = method.items(folder / "features", folder / "targets", records)
    held_out = len(items) // 10
    return Demo(method, folder / "backbone", items[held_out:], items[:held_out], records)


def comparison(data: Demo, what: str, turns: int) -> Comparison:
    """An epoch of training, ours with validation, both with copies of the same model."""
    gc.freeze()  # each Trainer collects garbage once, which takes longer with more imports
    set_seed(1)
    model = data.method.new_model(data.backbone)

    def ours() -> None:
        with tempfile.TemporaryDirectory() as folder:
            data.fit(deepcopy(model), Path(folder), epochs=1)

    def theirs() -> None:
        with tempfile.TemporaryDirectory() as folder:
            data.fit_plainly(deepcopy(model), Path(folder))

    what = f"training of {what}, {len(data.train):,} items"
    return compare(what, ours, "transformers.Trainer", theirs, turns=turns, goal=GOAL)
