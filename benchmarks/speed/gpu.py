"""Time training steps of large taggers on a GPU: tokens a second, share of matmul rate, memory.

A BERT of base size and a LLaMA of 1.2 billion parameters, all weights trained or with QLoRA, start
from random weights and read texts like the demo's. Without a GPU, tiny models show that the script
works; their figures mean nothing.

Rates are in floating-point operations of matrix products: six for a weight and token (two forward,
four backward), four if the weight is frozen, as it needs no gradient of its own. Attention and what
gradient checkpointing repeats are left out.
"""

from __future__ import annotations

import wxb  # silences the libraries that are imported below  # noqa: F401

# isort: split

import io
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import torch
import typer
from rich.console import Console
from rich.table import Table
from timing import matmul_rate, seconds, spread
from torch import nn
from training import Demo, demo

from wxb.core.progress import Progress
from wxb.training.backbones.size import parameter_count

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)

GOAL = 40  # % of the rate of matrix products
BERT = {
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
}
LLAMA = {
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 16,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
}
TINY = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
}
MODELS = {  # a shape, and the experiment of params.yaml whose other settings it has
    "BERT base": (BERT, "ner-encoder"),
    "LLaMA 1B": (LLAMA, "ner-decoder"),
    "LLaMA 1B, QLoRA": (LLAMA, "ner-decoder-qlora"),
}


class Training(NamedTuple):
    """Training steps of a model."""

    what: str
    tokens: list[float]  # without padding, per second, one figure per turn
    shares: list[float]  # of the rate of matrix products, %
    memory: int  # peak of the GPU, MiB; 0 without one


def measure(turns: int, rows: int, *, has_gpu: bool) -> Iterator[Training]:
    """Time steps on batches of `rows` texts of about the same length, in bfloat16 on a GPU."""
    device = "cuda" if has_gpu else "cpu"
    rate = matmul_rate(turns, device)
    for what, (shape, experiment) in MODELS.items():
        with tempfile.TemporaryDirectory() as folder:
            data = demo(Path(folder), max(20, 4 * rows), experiment, **(shape if has_gpu else TINY))
            yield _training(what, data, rate, turns, rows, device)


def _training(what: str, data: Demo, rate: float, turns: int, rows: int, device: str) -> Training:
    torch.manual_seed(1)
    model = data.method.build(data.backbone).to(device).train()
    longest = sorted([*data.valid, *data.train], key=lambda item: -len(item["input_ids"]))[:rows]
    batch = {key: values.to(device) for key, values in data.method.collator()(longest).items()}
    step = _step(model, batch, device)
    step()  # allocates the optimizer's state
    if device != "cpu":
        torch.cuda.reset_peak_memory_stats()
    times = [seconds(step) for _ in range(turns)]
    real, padded = int(batch["attention_mask"].sum()), batch["attention_mask"].numel()
    shares = [100 * _operations(model) * padded / taken / rate for taken in times]
    memory = torch.cuda.max_memory_allocated() // 2**20 if device != "cpu" else 0
    return Training(what, [real / taken for taken in times], shares, memory)


def _step(model: nn.Module, batch: dict[str, Any], device: str) -> Callable[[], None]:
    """A function that updates the trainable weights once, and waits until that is done."""
    optimizer = torch.optim.AdamW([w for w in model.parameters() if w.requires_grad], lr=1e-5)

    def step() -> None:
        with torch.autocast(device, torch.bfloat16, enabled=device != "cpu"):
            loss = model(**batch)["loss"]
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if device != "cpu":
            torch.cuda.synchronize()

    return step


def _operations(model: nn.Module) -> int:
    """Floating-point operations of a step for each token, without attention and embeddings."""
    embedded = sum(
        parameter_count(module) for module in model.modules() if isinstance(module, nn.Embedding)
    )
    weights = parameter_count(model) - embedded
    return 4 * weights + 2 * min(weights, parameter_count(model, trainable=True))


@app.command()
def main(
    turns: Annotated[int, typer.Option(min=1)] = 9,
    rows: Annotated[int, typer.Option(min=1, help="texts in a batch")] = 32,
) -> None:
    """Time training steps; on a CPU, of tiny models."""
    Progress.console = io.StringIO()
    result = Table("training step", "tokens/s", "% of matmul rate", "peak memory, MiB")
    for row in measure(turns, rows, has_gpu=torch.cuda.is_available()):
        shares = spread(row.shares, 0)
        result.add_row(row.what, spread(row.tokens, 0), shares, f"{row.memory:,}")
    Console(width=100).print(result)


if __name__ == "__main__":
    app()
