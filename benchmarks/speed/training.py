"""Time training a model of each task with this project and with transformers' Trainer.

Both start from the same weights and read the same items. Ours validates, saves the best epoch and
groups texts by length; the peer is `transformers.Trainer` with its default settings, which does
none of these. A second table shows where the time of each method goes.
"""

from __future__ import annotations

import contextlib
import gc
import io
import tempfile
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from unittest.mock import patch

import numpy as np
import torch
import typer
from rich.console import Console
from rich.table import Table
from ruamel.yaml import YAML
from timing import Comparison, compare, matmul_rate, seconds, table
from tokenize_align import demo_records
from torch.utils.flop_counter import FlopCounterMode
from transformers import Trainer, TrainingArguments, set_seed

from stages import align, download, preprocess, pretrain, tokenize, tokenizer
from wxb import tasks
from wxb.core import paths
from wxb.core.files import read_json
from wxb.core.params import load, read_yaml
from wxb.core.progress import Progress
from wxb.corpora import clean
from wxb.corpora.records import Record
from wxb.corpora.text.encoded import write_columns
from wxb.corpora.text.tokenizers import load as load_tokenizer
from wxb.corpora.text.tokenizers import train as train_tokenizer
from wxb.training import trainer
from wxb.training.backbones.weights import initial_model

ROOT = Path(__file__).parents[2]
GOAL = 1.3  # how many times as fast as the peer
# Models of other tasks: their profiles and experiments, and the share of records to train on.
MODELS = {
    "a BERT that classifies": ("reviews", "reviews-transformer-cls", 1),
    "a Transformer that translates": ("translation", "translation-transformer", 1),
    "a Whisper": ("speech", "speech-whisper", 0.25),  # recordings take longer
}
METHODS = ("ner-encoder", "ner-decoder", "ner-decoder-lora", "ner-decoder-qlora", "ner-generative")

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)


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
        experiment = self.method.experiment.model_copy(update={"training": settings})
        run = type(self.method)(experiment, self.method.labels, self.method.tokenizer).training_run(
            self.train, self.valid, seed=1, checkpoints=folder / "checkpoints", label="train"
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
            save_strategy="no",  # the Trainer cannot save shared weights of our models
            remove_unused_columns=False,
            label_names=list(self.method.TARGETS),
            use_cpu=not torch.cuda.is_available(),
            disable_tqdm=True,
            report_to="none",
        )
        with contextlib.redirect_stdout(io.StringIO()):
            Trainer(model, arguments, self.method.collator(), self.train).train()


def demo(folder: Path, count: int, experiment: str = "ner-encoder", **shape: Any) -> Demo:
    """A tagger without pretraining, and records like the demo's; a tenth of its items validates."""
    params = load(ROOT / "params.yaml")
    block = params.block("experiments", experiment)
    backbone = params.block("backbones", block.backbone)
    architecture = backbone.architecture.model_copy(update=shape)
    backbone = backbone.model_copy(update={"architecture": architecture})
    records = demo_records(count, languages=["en", "zh"])
    texts = [record.input for record in records]
    tokenizer = train_tokenizer(backbone.tokenizer.kind, backbone.tokenizer.vocabulary, texts)
    set_seed(1)
    initial_model(backbone, tokenizer).save_pretrained(folder / "backbone")
    tokenizer.save_pretrained(folder / "backbone")
    labels = sorted({span.type for record in records for span in record.gold})
    method = tasks.method_of(block, labels, tokenizer)
    method.encode([records], folder / "features", label="tokenize")
    columns, splits, _ = method.align(folder / "features", [records])
    write_columns(folder / "targets", columns, splits)
    items = method.dataset(folder / "features", folder / "targets", records)
    held_out = len(items) // 10
    return Demo(method, folder / "backbone", items[held_out:], items[:held_out], records)


def project(folder: Path, profile: str, experiment: str, count: int) -> Demo:
    """An experiment of a profile and at most `count` training items, made by stages in a folder."""
    small_project(folder, profile, experiment, count)
    with contextlib.chdir(folder):
        block = load().block("experiments", experiment)
        labels = read_json(paths.targets(experiment) / paths.LABELS)
        backbone = folder / paths.model(block.backbone)
        method = tasks.method_of(block, labels, load_tokenizer(backbone))
        record, items = tasks.get(block.task).record, []
        for split, limit in (("train", count), ("valid", -(-count // 10))):
            files = (
                part(experiment) / f"{split}.arrow" for part in (paths.features, paths.targets)
            )
            path = paths.clean(block.corpus) / f"{split}.parquet"
            rows = [*method.dataset(*files, clean.iter_labelled(path, record))]
            spread = np.linspace(
                0, len(rows), min(limit, len(rows)), endpoint=False
            )  # may be sorted
            items.append([rows[int(index)] for index in spread])
    return Demo(method, backbone, *items)


def small_project(folder: Path, profile: str, experiment: str, records: int) -> None:
    """Write a project of a profile with few records, aligned for an experiment."""
    params = read_yaml(ROOT / "params.yaml")
    for section, blocks in read_yaml(ROOT / f"params/{profile}.yaml").items():
        params[section].update(blocks)
    corpus, backbone = (params["experiments"][experiment][key] for key in ("corpus", "backbone"))
    generate = params["corpora"][corpus]["generate"]
    generate.update(labelled=2 * records, unlabelled=min(8, generate.get("unlabelled", 0)))
    if pretraining := params["backbones"][backbone].get("pretraining"):
        pretraining.update(steps=1, checkpoints=1)
    YAML().dump(params, folder / "params.yaml")
    (folder / "demos").symlink_to(ROOT / "demos")
    with contextlib.chdir(folder):
        checked = load()
        for stages, name in (
            ((download, preprocess), corpus),
            ((tokenizer, pretrain), backbone),
            ((tokenize, align), experiment),
        ):
            for stage in stages:
                stage.main(checked, name)


def comparison(data: Demo, what: str, turns: int) -> Comparison:
    """An epoch of training, ours with validation, both with copies of the same model."""
    gc.freeze()  # each Trainer collects garbage once, which takes longer with more imports
    set_seed(1)
    model = data.method.build(data.backbone)

    def ours() -> None:
        with tempfile.TemporaryDirectory() as folder:
            data.fit(deepcopy(model), Path(folder), epochs=1)

    def theirs() -> None:
        with tempfile.TemporaryDirectory() as folder:
            data.fit_plainly(deepcopy(model), Path(folder))

    what = f"training of {what}, {len(data.train):,} items"
    return compare(what, ours, "transformers.Trainer", theirs, turns=turns, goal=GOAL)


def comparisons(count: int, turns: int) -> Iterator[Comparison]:
    """An epoch of training of MODELS."""
    for what, (profile, experiment, share) in MODELS.items():
        with tempfile.TemporaryDirectory() as folder:
            data = project(Path(folder), profile, experiment, round(share * count))
            yield comparison(data, what, turns)


class Profile(NamedTuple):
    """Where the time of training goes."""

    what: str
    tokens: float  # per second of training, without padding
    padding: float  # % of the positions in batches
    matmul: float  # % of the rate of matrix products that forward and backward passes reach
    outside: float  # % of the time outside of these: optimizer, batches, validation, checkpoints


class Steps:
    """The forward and backward passes of one training, counted and timed."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.tokens = self.positions = self.operations = 0

    @contextlib.contextmanager
    def watch(self, *, operations: bool) -> Iterator[None]:
        """Within this context, time all passes; or count their operations, which takes longer."""
        run = Trainer.training_step

        def step(trainer: Trainer, model: Any, inputs: dict[str, Any], *rest: Any) -> Any:
            result: list[Any] = []
            if operations:
                with FlopCounterMode(display=False) as counter:
                    result.append(run(trainer, model, inputs, *rest))
                self.operations += counter.get_total_flops()
                return result[0]
            self.tokens += int(inputs["attention_mask"].sum())
            self.positions += inputs["attention_mask"].numel()
            self.seconds += seconds(lambda: result.append(run(trainer, model, inputs, *rest)))
            return result[0]

        with patch.object(Trainer, "training_step", step):
            yield


def profiles(records: int) -> Iterator[Profile]:
    """Train the demo's methods for an epoch each."""
    for name in METHODS:
        with tempfile.TemporaryDirectory() as folder:
            yield _profile(name, demo(Path(folder), records, name))


def _profile(name: str, data: Demo) -> Profile:
    set_seed(1)
    model, steps = data.method.build(data.backbone), Steps()

    def fit() -> None:
        with tempfile.TemporaryDirectory() as folder:
            data.fit(deepcopy(model), Path(folder), epochs=1)

    with steps.watch(operations=True):
        fit()
    with steps.watch(operations=False):
        total = seconds(fit)
    return Profile(
        name,
        tokens=steps.tokens / total,
        padding=100 * (1 - steps.tokens / steps.positions),
        matmul=100 * steps.operations / steps.seconds / matmul_rate(),
        outside=100 * (1 - steps.seconds / total),
    )


@app.command()
def main(
    records: Annotated[int, typer.Option(min=20)] = 1000,
    turns: Annotated[int, typer.Option(min=1)] = 3,
    threads: Annotated[int, typer.Option(min=1, help="torch threads, on both sides")] = 1,
) -> None:
    """Time an epoch of training with both, and show where the time of each method goes."""
    torch.set_num_threads(threads)
    Progress.console = io.StringIO()
    console = Console(width=100)
    with tempfile.TemporaryDirectory() as folder:
        console.print(table([comparison(demo(Path(folder), records), "a tagger", turns)]))
    console.print(table(comparisons(records, turns)))
    result = Table("method", "tokens/s", "padding, %", "% of matmul rate", "outside of passes, %")
    for row in profiles(records):
        result.add_row(row.what, *(f"{value:,.0f}" for value in row[1:]))
    console.print(result)


if __name__ == "__main__":
    app()
