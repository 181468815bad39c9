"""How fast the LSTM that trains is, beside the text book's cell by cell, on the same weights.

The text book is `wxb.models.lstm.LSTM`; what trains is `read_both_ways`, torch's own. Both run by
turns, and the ratio of each turn is taken: the median is printed. A step is forward and backward.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Annotated

import torch
import typer
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from wxb.models.lstm import LSTM, read_both_ways

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
console = Console(width=100)  # a table is cut nowhere, whatever the terminal

Read = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


@app.command()
def main(
    rows: int = 32,
    length: Annotated[int, typer.Option(help="tokens of the longest row")] = 128,
    width: int = 256,
    hidden: int = 128,
    turns: Annotated[int, typer.Option(min=1)] = 7,
    threads: Annotated[int | None, typer.Option(min=1, help="of both; by default torch's")] = None,
    device: str = "cpu",
    seed: int = 2,
) -> None:
    """Time both on random vectors: rows all of one length, and rows of a quarter to all of it."""
    torch.set_num_threads(threads or torch.get_num_threads())
    torch.manual_seed(seed)
    book = LSTM(width, hidden, bidirectional=True).to(device)
    fast = nn.LSTM(width, hidden, batch_first=True, bidirectional=True).to(device)
    fast.load_state_dict(book.state_dict())
    inputs = torch.randn(rows, length, width, device=device)
    lengths = torch.randint(length // 4, length + 1, (rows, 1))
    lengths[0] = length
    masks = {
        "none": torch.ones(rows, length, dtype=torch.bool, device=device),
        f"{1 - lengths.sum() / (rows * length):.0%}": (torch.arange(length) < lengths).to(device),
    }
    table = Table("padding", "work", "cell by cell, ms", "what trains, ms", "times as fast")
    for padding, mask in masks.items():
        for name, work in {"forward": _forward, "step": _step}.items():
            sides: list[Read] = [book, partial(read_both_ways, fast)]
            for side in sides:
                work(side, inputs, mask)  # the first call is slower
            pairs = [[_seconds(work, side, inputs, mask) for side in sides] for _ in range(turns)]
            medians = [f"{1000 * statistics.median(side):.0f}" for side in zip(*pairs, strict=True)]
            ratio = statistics.median(slow / quick for slow, quick in pairs)
            table.add_row(padding, name, *medians, f"{ratio:.2f}")
    console.print(
        f"{rows} x {length} x {width}, hidden {hidden}, both directions, {device},"
        f" {torch.get_num_threads()} thread(s)"
    )
    console.print(table)


def _forward(read: Read, inputs: Tensor, mask: Tensor) -> float:
    with torch.inference_mode():
        return float(read(inputs, mask)[0].sum())


def _step(read: Read, inputs: Tensor, mask: Tensor) -> float:
    loss = read(inputs, mask)[0].square().mean()
    torch.autograd.backward(loss)
    return float(loss.detach())


def _seconds(
    work: Callable[[Read, Tensor, Tensor], float], read: Read, inputs: Tensor, mask: Tensor
) -> float:
    """Wall time of a call, whose result, a number, waits for the device to end."""
    started = time.perf_counter()
    work(read, inputs, mask)
    return time.perf_counter() - started


if __name__ == "__main__":
    app()
