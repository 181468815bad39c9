"""The command `wxb estimate`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType

from wxb.core.errors import WxbError
from wxb.core.params import load
from wxb.project.completion import names
from wxb.reporting.charts.formatting import duration, size
from wxb.reporting.terminal import show, show_json, table

if TYPE_CHECKING:
    from wxb.project.estimate.estimate import Estimate  # takes torch


def estimate(
    experiment: Annotated[
        str | None,
        typer.Argument(
            help="an experiment of params.yaml; default: all", autocompletion=names("experiments")
        ),
    ] = None,
    timed: Annotated[
        bool, typer.Option("--time/--no-time", help="measure a few updates on this machine")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="as JSON, for other programs")] = False,
) -> None:
    """Estimate the FLOPs, memory, disk and time of training.

    No model is built, so models too large for this machine are estimated too. Sequence lengths
    come from the data after `dvc repro tokenize`, before that from the parameters. The time on
    this machine is measured with a few updates; that of GPUs comes from their data sheets.

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
        show_json([one._asdict() for one in found.values()])
        return
    if not found:
        return
    show(
        _sizes([*found.values()]),
        "tokens: of a text with its padding; disk: the model + checkpoints meanwhile\n",
        _times([*found.values()]),
        "",
    )
    if not all(one.counted for one in found.values()):
        print("At most so many tokens: their texts are not tokenized yet.")
    print(
        f"GPUs: at {estimates.UTILISATION:.0%} of the peak that their makers state, and"
        f" {1000 * estimates.LAUNCH:.0f} ms an update at least; evaluation comes on top."
    )


def _sizes(found: list[Estimate]) -> RenderableType:
    header = ["stage", "parameters", "trained", "updates", "tokens", "operations", "memory", "disk"]
    rows = [
        (
            one.stage,
            f"{one.parameters:,}",
            f"{one.trainable:,}",
            f"{one.updates:,}",
            f"{'' if one.counted else '≤ '}{one.length}",
            f"{one.flops:.1e}",
            size(one.memory),
            f"{size(one.model_bytes)} + {size(one.checkpoint_bytes)}",
        )
        for one in found
    ]
    return table(header, rows, title="What has to be done and kept", numbers=True)


def _times(found: list[Estimate]) -> RenderableType:
    header = ["stage", "here", "measured here", *found[0].gpus]
    rows = []
    for one in found:
        measured = duration(one.measured["seconds"]) if one.measured else ""
        gpus = ["too small" if s is None else duration(s) for s in one.gpus.values()]
        here = duration(one.seconds) if one.seconds else "-"
        rows.append((one.stage, f"{here} ({one.how})" if one.how else here, measured, *gpus))
    return table(header, rows, title="Time", numbers=True)
