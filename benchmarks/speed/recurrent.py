"""Time three versions of a bidirectional LSTM with the same weights.

They are the textbook version, cell by cell (`wxb.models.lstm.LSTM`), `run_bidirectional`, which
runs torch's layers on padded rows and trains the models, and torch's layers on packed rows. A step
is forward and backward.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated

import torch
import typer
from rich.console import Console
from timing import Comparison, compare, table
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from wxb.models.lstm import LSTM, run_bidirectional
from wxb.project.reproduction import benchmarks

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
console = Console(width=100)  # fixed, so that no terminal truncates the table

Run = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


@app.command()
def main(
    rows: int = 32,
    length: Annotated[int, typer.Option(help="number of tokens of the longest row")] = 128,
    width: int = 256,
    hidden: int = 128,
    turns: Annotated[int, typer.Option(min=1)] = 7,
    threads: Annotated[
        int | None, typer.Option(min=1, help="torch threads; default: torch's")
    ] = None,
    device: str = "cpu",
    seed: int = 2,
) -> None:
    """Time all versions on random rows, of equal lengths and of a quarter to the full length."""
    torch.set_num_threads(threads or torch.get_num_threads())
    console.print(
        f"{rows} x {length} x {width}, hidden {hidden}, both directions, {device},"
        f" {torch.get_num_threads()} thread(s)"
    )
    sizes = {"rows": rows, "length": length, "width": width, "hidden": hidden}
    console.print(table(comparisons(turns, **sizes, device=device, seed=seed)))


def comparisons(
    turns: int,
    *,
    rows: int = 32,
    length: int = 128,
    width: int = 256,
    hidden: int = 128,
    device: str = "cpu",
    seed: int = 2,
) -> Iterator[Comparison]:
    """Padded rows compared with the other versions, with rows of equal and of unequal lengths."""
    torch.manual_seed(seed)
    textbook = LSTM(width, hidden, bidirectional=True).to(device)
    layers = nn.LSTM(width, hidden, batch_first=True, bidirectional=True).to(device)
    layers.load_state_dict(textbook.state_dict())
    inputs = torch.randn(rows, length, width, device=device)
    lengths = torch.randint(length // 4, length + 1, (rows, 1))
    lengths[0] = length
    masks = {
        "no": torch.ones(rows, length, dtype=torch.bool, device=device),
        f"{1 - lengths.sum() / (rows * length):.0%}": (torch.arange(length) < lengths).to(device),
    }
    padded = partial(run_bidirectional, layers)
    peers: dict[str, Run] = {"cell by cell": textbook, "packed rows": partial(_packed, layers)}
    for padding, mask in masks.items():
        for name, work in {"forward": _forward, "step": _step}.items():
            for peer, run in peers.items():
                ours, theirs = (partial(work, r, inputs, mask) for r in (padded, run))
                what = f"LSTM, {name}, {padding} padding"
                yield compare(what, ours, peer, theirs, turns=turns)


def _packed(layers: nn.LSTM, inputs: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """As `run_bidirectional`, with torch's packed rows."""
    lengths = mask.sum(dim=1).cpu()
    packed = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
    outputs, (ends, _) = layers(packed)
    padded = pad_packed_sequence(outputs, batch_first=True, total_length=mask.shape[1])[0]
    return padded, torch.cat([ends[-2], ends[-1]], dim=-1)


def _forward(run: Run, inputs: Tensor, mask: Tensor) -> float:
    with torch.inference_mode():
        return float(run(inputs, mask)[0].sum())


def _step(run: Run, inputs: Tensor, mask: Tensor) -> float:
    loss = run(inputs, mask)[0].square().mean()
    torch.autograd.backward(loss)
    return float(loss.detach())


if __name__ == "__main__":
    benchmarks.run(app)
