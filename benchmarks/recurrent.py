"""How fast the LSTM that trains is, beside the text book's cell by cell, on the same weights.

The text book is `wxb.models.lstm.LSTM`; what trains is `read_both_ways`, torch's own on whole rows,
and beside them stands torch's own on packed rows. They run by turns, and the ratios of each turn
are taken: the medians are printed. A step is forward and backward.
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
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

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
    """Time all on random vectors: rows all of one length, and rows of a quarter to all of it."""
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
    sides: dict[str, Read] = {
        "cell by cell": book,
        "what trains": partial(read_both_ways, fast),
        "packed": partial(_packed, fast),
    }
    ratio_of = [f"{name}, times as fast" for name in sides][1:]
    table = Table("padding", "work", *(f"{name}, ms" for name in sides), *ratio_of)
    for padding, mask in masks.items():
        for name, work in {"forward": _forward, "step": _step}.items():
            for side in sides.values():
                work(side, inputs, mask)  # the first call is slower
            seconds = [
                [_seconds(work, side, inputs, mask) for side in sides.values()]
                for _ in range(turns)
            ]
            ratios = [[book / other for other in others] for book, *others in seconds]
            table.add_row(padding, name, *_medians(seconds, 1000, 0), *_medians(ratios, 1, 2))
    console.print(
        f"{rows} x {length} x {width}, hidden {hidden}, both directions, {device},"
        f" {torch.get_num_threads()} thread(s)"
    )
    console.print(table)


def _packed(layers: nn.LSTM, inputs: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """What torch would have: rows of tokens alone; outputs and last states as `read_both_ways`."""
    lengths = mask.sum(dim=1).cpu()
    packed = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
    outputs, (ends, _) = layers(packed)
    whole = pad_packed_sequence(outputs, batch_first=True, total_length=mask.shape[1])[0]
    return whole, torch.cat([ends[-2], ends[-1]], dim=-1)


def _medians(turns: list[list[float]], factor: float, digits: int) -> list[str]:
    """The median of each column, times a factor."""
    return [f"{factor * statistics.median(side):.{digits}f}" for side in zip(*turns, strict=True)]


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
