"""The command `wxb estimate`."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from wxb.errors import WxbError
from wxb.params import load
from wxb.project.completion import names

if TYPE_CHECKING:
    from wxb.project.estimate.estimate import Estimate  # takes torch

SIZES = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10), ("B", 1))
UNITS = (("year", 31_557_600), ("day", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def estimate(
    experiment: Annotated[
        str | None,
        typer.Argument(
            help="an experiment of params.yaml; default: all", autocompletion=names("experiments")
        ),
    ] = None,
    timed: Annotated[
        bool, typer.Option("--time/--no-time", help="try some updates, to know the time here")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="as JSON, for other programs")] = False,
) -> None:
    """Tell what training will take, before it is begun: operations, memory, disk and time.

    Models are counted without making them, so one too large for this machine can be asked for, too.
    Once `dvc repro tokenize` has run, lengths are those of the data; before they are what the
    parameters allow. Time here comes from a few updates, that of GPUs from what their makers state.

    Example: wxb estimate NAME
    """
    from wxb.project.estimate import estimate as estimates

    params = load()
    if experiment:
        params.named("experiments", experiment)
    asked = [experiment] if experiment else [*params.experiments]
    found: dict[str, Estimate] = {}
    for name in asked:
        try:
            for one in estimates.of(params, name, timed=timed):
                found.setdefault(one.stage, one)
        except WxbError as error:
            if experiment:
                raise
            print(error, file=sys.stderr)  # of all the others there is something to tell
    if as_json:
        print(json.dumps([one._asdict() for one in found.values()], indent=2))
        return
    if not found:
        return
    console = Console()
    console.print(_sizes([*found.values()]))
    console.print(_times([*found.values()]))
    if not all(one.counted for one in found.values()):
        print("At most so many tokens: their texts are not tokenized yet.")
    print(
        f"GPUs: at {estimates.UTILISATION:.0%} of the peak that their makers state, and"
        f" {1000 * estimates.LAUNCH:.0f} ms an update at least; evaluation comes on top."
    )


def _sizes(found: list[Estimate]) -> Table:
    table = Table(title="What has to be done and kept", box=SIMPLE_HEAD)
    table.add_column("stage", no_wrap=True)
    for heading in ("parameters", "trained", "updates", "tokens", "operations", "memory", "disk"):
        table.add_column(heading, justify="right")
    for one in found:
        table.add_row(
            one.stage,
            f"{one.parameters:,}",
            f"{one.trainable:,}",
            f"{one.updates:,}",
            f"{'' if one.counted else '≤ '}{one.length}",
            f"{one.flops:.1e}",
            size(one.memory),
            f"{size(one.model_bytes)} + {size(one.checkpoint_bytes)}",
        )
    table.caption = "tokens: of a text with its padding; disk: the model + checkpoints meanwhile"
    return table


def _times(found: list[Estimate]) -> Table:
    table = Table(title="Time", box=SIMPLE_HEAD)
    table.add_column("stage", no_wrap=True)
    for heading in ("here", "measured here", *found[0].gpus):
        table.add_column(heading, justify="right")
    for one in found:
        measured = duration(one.measured["seconds"]) if one.measured else ""
        gpus = ["too small" if s is None else duration(s) for s in one.gpus.values()]
        here = duration(one.seconds) if one.seconds else "-"
        table.add_row(one.stage, f"{here} ({one.how})" if one.how else here, measured, *gpus)
    return table


def size(amount: float) -> str:
    """Bytes in a unit that suits them."""
    unit, length = next(u for u in SIZES if amount >= u[1] or u[0] == "B")
    return f"{amount / length:.3g} {unit}"


def duration(seconds: float) -> str:
    """Seconds in a unit that suits them."""
    unit, length = next((u for u in UNITS if seconds >= u[1]), UNITS[-1])
    return (
        f"{seconds / length:.2g} {unit}"
        if seconds < 10 * length
        else f"{seconds / length:.0f} {unit}"
    )
