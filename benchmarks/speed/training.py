"""Time training the demo's tagger with this project and with transformers' Trainer.

Both start from the same random weights and read the same items. Ours validates, saves checkpoints
and groups texts by length; the peer is `transformers.Trainer` with its default settings, which does
none of these.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from timing import Comparison, compare, table
from tokenize_align import demo_records
from transformers import Trainer, TrainingArguments, set_seed

from wxb.core.params import load
from wxb.core.progress import Progress
from wxb.corpora.records import Record
from wxb.corpora.text.encoded import write_columns
from wxb.corpora.text.tokenizers import train
from wxb.tasks.ner.tagging.method import Method
from wxb.training import trainer
from wxb.training.backbones.weights import initial_model

ROOT = Path(__file__).parents[2]
GOAL = 1.3  # how many times as fast as the peer

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)


@dataclass
class Demo:
    """The demo's encoder as a tagger with random weights, and its items."""

    method: Method
    backbone: Path  # a folder
    records: Sequence[Record]
    items: list[dict[str, Any]]

    def fit(self, model: Any, folder: Path, epochs: int) -> None:
        """Train a model with this project; a tenth of the items validates."""
        settings = self.method.experiment.training.model_copy(update={"epochs": epochs})
        experiment = self.method.experiment.model_copy(update={"training": settings})
        held_out = len(self.items) // 10
        run = Method(experiment, self.method.labels, self.method.tokenizer).training_run(
            self.items[held_out:],
            self.items[:held_out],
            seed=1,
            checkpoints=folder / "checkpoints",
            label="train",
        )
        with contextlib.redirect_stdout(io.StringIO()):
            trainer.fit(model, run)

    def fit_plainly(self, model: Any, folder: Path) -> None:
        """Train a model for one epoch with transformers' Trainer at its defaults."""
        settings = self.method.experiment.training
        arguments = TrainingArguments(
            output_dir=str(folder),
            num_train_epochs=1,
            per_device_train_batch_size=settings.batch_size,
            learning_rate=settings.learning_rate,
            remove_unused_columns=False,
            label_names=list(self.method.TARGETS),
            use_cpu=not torch.cuda.is_available(),
            disable_tqdm=True,
            report_to="none",
        )
        items = self.items[len(self.items) // 10 :]
        with contextlib.redirect_stdout(io.StringIO()):
            Trainer(model, arguments, self.method.collator(), items).train()


def demo(folder: Path, count: int, experiment: str = "ner-encoder", **shape: Any) -> Demo:
    """Records like the demo's, and a tagger of an experiment without pretraining, in a folder."""
    params = load(ROOT / "params.yaml")
    block = params.block("experiments", experiment)
    backbone = params.block("backbones", block.backbone)
    architecture = backbone.architecture.model_copy(update=shape)
    backbone = backbone.model_copy(update={"architecture": architecture})
    records = demo_records(count, languages=["en", "zh"])
    texts = [record.input for record in records]
    tokenizer = train(backbone.tokenizer.kind, backbone.tokenizer.vocabulary, texts)
    set_seed(1)
    initial_model(backbone, tokenizer).save_pretrained(folder / "backbone")
    labels = sorted({span.type for record in records for span in record.gold})
    method = Method(block, labels, tokenizer)
    method.encode([records], folder / "features", label="tokenize")
    columns, splits, _ = method.align(folder / "features", [records])
    write_columns(folder / "targets", columns, splits)
    items = method.dataset(folder / "features", folder / "targets", records)
    return Demo(method, folder / "backbone", records, items)


def comparison(data: Demo, turns: int) -> Comparison:
    """An epoch of training, ours with validation, both with copies of the same model."""
    set_seed(1)
    model = data.method.build(data.backbone)

    def ours() -> None:
        with tempfile.TemporaryDirectory() as folder:
            data.fit(deepcopy(model), Path(folder), epochs=1)

    def theirs() -> None:
        with tempfile.TemporaryDirectory() as folder:
            data.fit_plainly(deepcopy(model), Path(folder))

    what = f"training of a tagger, {len(data.items):,} windows"
    return compare(what, ours, "transformers.Trainer", theirs, turns=turns, goal=GOAL)


@app.command()
def main(
    records: Annotated[int, typer.Option(min=20)] = 1000,
    turns: Annotated[int, typer.Option(min=1)] = 3,
    threads: Annotated[int, typer.Option(min=1, help="torch threads, on both sides")] = 1,
) -> None:
    """Time an epoch of training with both."""
    torch.set_num_threads(threads)
    Progress.console = io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        Console(width=100).print(table([comparison(demo(Path(folder), records), turns)]))


if __name__ == "__main__":
    app()
