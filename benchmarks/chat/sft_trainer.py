"""TRL's SFTTrainer beside ours: same model, conversations, masks, seed and settings.

Prints how far the masks, the loss curves and the weights differ, and the seconds of both.
"""

from __future__ import annotations

import os
from dataclasses import replace

from wxb.training.run import TrainingRun

os.environ["OMP_NUM_THREADS"] = "1"  # before torch is imported: both sides have one thread

import tempfile
import time
from collections.abc import Callable
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
from wxb.tasks.chat.record.conversation import message, of_text
from wxb.training import trainer

BEST = Metric("loss", "loss", lower_is_better=True)  # on validation records

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)


@app.command()
def main(
    experiment: Annotated[str, typer.Argument(help="one of chat, aligned already")] = "chat-full",
    records: Annotated[int, typer.Option(min=32, help="training records")] = 800,
    epochs: Annotated[int, typer.Option(min=1)] = 2,
    repeats: Annotated[int, typer.Option(min=1, help="runs of each side, in turn")] = 3,
) -> None:
    """Train both and compare."""
    disable_progress_bar()
    block = load().experiments[experiment]
    task, corpus = tasks.get(block.task), paths.clean(block.corpus)
    backbone = paths.model(block.backbone)
    settings = block.training.model_copy(update={"epochs": epochs, "schedule": "linear"})
    block = block.model_copy(update={"training": settings})
    method = tasks.method_of(block, [], load_tokenizer(backbone))
    items, conversations = {}, {}
    for split, number in (("train", records), ("valid", records // 8)):
        kept = clean.labelled(corpus / f"{split}.parquet", task.record)
        whole = method.dataset(
            paths.features(experiment) / f"{split}.arrow",
            paths.targets(experiment) / f"{split}.arrow",
            kept,
        )
        items[split] = whole[:number]
        conversations[split] = Dataset.from_list(
            [
                {"messages": [*of_text(r.input), message("assistant", r.gold["text"])]}
                for r in kept[:number]
            ]
        )

    def build() -> Any:
        set_seed(1)
        return method.build(backbone)

    def run(folder: Path) -> TrainingRun:
        made = method.training_run(**items, seed=1, checkpoints=folder, label="ours")
        return replace(made, compute_metrics=None, summarize=None, best=BEST)

    def ours(folder: Path) -> tuple[list[float], dict[str, Any], float]:
        model = build()
        began = time.perf_counter()
        history = trainer.fit(model, run(folder))
        seconds = time.perf_counter() - began
        return _losses(history), dict(model.backbone.named_parameters()), seconds

    def theirs(folder: Path) -> tuple[list[float], dict[str, Any], float]:
        model = build().backbone
        same = trainer._arguments(run(folder), None)
        kept = (
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
                **{name: getattr(same, name) for name in kept},
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
        began = time.perf_counter()
        peer.train()
        seconds = time.perf_counter() - began
        return _losses(peer.state.log_history), dict(model.named_parameters()), seconds

    trainer.LOGS = 10**9  # a loss for every step
    found: dict[str, list[tuple[list[float], dict[str, Any], float]]] = {"ours": [], "TRL": []}
    sides: dict[str, Callable[[Path], Any]] = {"ours": ours, "TRL": theirs}
    for _ in range(repeats):
        for name, side in sides.items():
            with tempfile.TemporaryDirectory() as folder:
                found[name].append(side(Path(folder)))
    (losses, weights, _), (peer_losses, peer_weights, _) = (found[name][0] for name in found)
    seconds = {name: median(run[2] for run in runs) for name, runs in found.items()}
    apart = np.abs(np.array(losses) - np.array(peer_losses))
    moved = max(float((weights[n].data - peer_weights[n].data).abs().max()) for n in weights)
    table = Table("", "ours", "TRL", title=f"{experiment}: {records} records, {epochs} epochs")
    table.add_row("seconds (median)", *(f"{value:.2f}" for value in seconds.values()))
    table.add_row("time, ours to TRL's", f"{seconds['ours'] / seconds['TRL']:.2f}", "1.00")
    table.add_row("last loss", f"{losses[-1]:.6f}", f"{peer_losses[-1]:.6f}")
    table.add_row("largest difference of a step's loss", f"{apart.max():.1e}", "")
    table.add_row("largest difference of a weight", f"{moved:.1e}", "")
    Console().print(table)


def _losses(history: Any) -> list[float]:
    return [float(row["loss"]) for row in history if "loss" in row]


def _compare_masks(theirs: Any, ours: Any) -> None:
    """Stop where the tokens or what is learnt of them differ."""
    for one, other in zip(theirs, ours, strict=True):
        if any(one[name] != other[name].tolist() for name in ("input_ids", "labels")):
            raise SystemExit(f"the tokens or masks differ: {one} and {other}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    app()
