"""Compares our training with TRL's SFTTrainer: same model, conversations, masks, seed and settings.

Prints the seconds of both and the differences of losses and weights; stops if tokens or masks
differ.
"""

from __future__ import annotations

import wxb  # silences the libraries that are imported below  # noqa: F401

# isort: split

import os
from dataclasses import replace

from wxb.project.reproduction import benchmarks
from wxb.training.run import TrainingRun

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported, for both sides

import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import numpy as np
import torch
import typer
from datasets import Dataset
from datasets.utils.logging import disable_progress_bar
from rich.console import Console
from rich.table import Table
from transformers import set_seed
from trl import SFTConfig, SFTTrainer

from wxb import tasks
from wxb.core import paths
from wxb.core.params import load
from wxb.corpora import clean
from wxb.corpora.text.tokenizers import load as load_tokenizer
from wxb.metrics import Metric
from wxb.tasks.chat.record.conversation import from_text, message
from wxb.training import trainer

BEST = Metric("loss", "loss", lower_is_better=True)  # on validation records

# The losses of the steps, the final weights, and the seconds of a training.
Training = tuple[list[float], dict[str, Any], float]

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)


@app.command()
def main(
    experiment: Annotated[
        str, typer.Argument(help="an aligned experiment of task chat")
    ] = "chat-full",
    records: Annotated[int, typer.Option(min=32, help="training records")] = 800,
    epochs: Annotated[int, typer.Option(min=1)] = 2,
    repeats: Annotated[int, typer.Option(min=1, help="runs of each side, alternating")] = 3,
) -> None:
    """Train with both and print a table."""
    runs = trainings(experiment, records=records, epochs=epochs, repeats=repeats)
    (losses, weights, _), (peer_losses, peer_weights, _) = (rows[0] for rows in runs)
    seconds = [median(row[2] for row in rows) for rows in runs]
    differences = np.abs(np.array(losses) - np.array(peer_losses))
    largest = max(float((weights[n].data - peer_weights[n].data).abs().max()) for n in weights)
    table = Table("", "ours", "TRL", title=f"{experiment}: {records} records, {epochs} epochs")
    table.add_row("seconds (median)", *(f"{value:.2f}" for value in seconds))
    table.add_row("relative time", f"{seconds[0] / seconds[1]:.2f}", "1.00")
    table.add_row("last loss", f"{losses[-1]:.6f}", f"{peer_losses[-1]:.6f}")
    table.add_row("largest difference of a step's loss", f"{differences.max():.1e}", "")
    table.add_row("largest difference of a weight", f"{largest:.1e}", "")
    Console().print(table)


def trainings(
    experiment: str, *, records: int, epochs: int, repeats: int
) -> tuple[list[Training], list[Training]]:
    """The trainings of an aligned experiment in the working folder: ours and TRL's."""
    disable_progress_bar()
    block = load().experiments[experiment]
    task, corpus = tasks.get(block.task), paths.clean(block.corpus)
    backbone = paths.model(block.backbone)
    settings = block.training.model_copy(update={"epochs": epochs, "schedule": "linear"})
    block = block.model_copy(update={"training": settings})
    method = tasks.method_of(block, [], load_tokenizer(backbone))
    items, conversations = {}, {}
    for split, count in (("train", records), ("valid", records // 8)):
        labelled = clean.read_labelled(corpus / f"{split}.parquet", task.record)
        dataset = method.dataset(
            paths.features(experiment) / f"{split}.arrow",
            paths.targets(experiment) / f"{split}.arrow",
            labelled,
        )
        items[split] = dataset[:count]
        conversations[split] = Dataset.from_list(
            [
                {"messages": [*from_text(r.input), message("assistant", r.gold["text"])]}
                for r in labelled[:count]
            ]
        )

    def build() -> Any:
        set_seed(1)
        return method.build(backbone)

    def run(folder: Path) -> TrainingRun:
        own = method.training_run(**items, seed=1, checkpoints=folder, label="ours")
        return replace(own, compute_metrics=None, summarize=None, best=BEST)

    def ours(folder: Path) -> Training:
        model = build()
        start = time.perf_counter()
        history = trainer.fit(model, run(folder))
        seconds = time.perf_counter() - start
        return _losses(history), dict(model.backbone.named_parameters()), seconds

    def theirs(folder: Path) -> Training:
        model = build().backbone
        same = trainer._arguments(run(folder), None)
        shared = (
            "num_train_epochs",
            "per_device_train_batch_size",
            "per_device_eval_batch_size",
            "learning_rate",
            "weight_decay",
            "warmup_steps",
            "lr_scheduler_type",
            "max_grad_norm",
            "train_sampling_strategy",
            "eval_strategy",
            "save_strategy",
            "save_total_limit",
            "load_best_model_at_end",
            "metric_for_best_model",
            "greater_is_better",
            "seed",
            "data_seed",
            "use_cpu",
            "dataloader_pin_memory",
            "disable_tqdm",
            "report_to",
        )
        peer = SFTTrainer(
            model=model,
            args=SFTConfig(
                output_dir=str(folder),
                **{name: getattr(same, name) for name in shared},
                bf16=False,
                gradient_checkpointing=False,
                logging_steps=1,
                max_length=block.encoding.max_length,
                assistant_only_loss=block.encoding.loss == "assistant",
            ),
            train_dataset=conversations["train"],
            eval_dataset=conversations["valid"],
            processing_class=method.tokenizer,
        )
        _compare_masks(peer.train_dataset, items["train"])
        start = time.perf_counter()
        peer.train()
        seconds = time.perf_counter() - start
        return _losses(peer.state.log_history), dict(model.named_parameters()), seconds

    trainer.LOGS = 10**9  # log the loss of every step
    runs: tuple[list[Training], list[Training]] = ([], [])
    for _ in range(repeats):
        for side, rows in zip((ours, theirs), runs, strict=True):
            with tempfile.TemporaryDirectory() as folder:
                rows.append(side(Path(folder)))
    return runs


def _losses(history: Any) -> list[float]:
    return [float(row["loss"]) for row in history if "loss" in row]


def _compare_masks(theirs: Any, ours: Any) -> None:
    """Exit if tokens or labels differ."""
    for their_item, our_item in zip(theirs, ours, strict=True):
        if any(their_item[name] != our_item[name].tolist() for name in ("input_ids", "labels")):
            raise SystemExit(f"the tokens or masks differ: {their_item} and {our_item}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    benchmarks.run(app)
