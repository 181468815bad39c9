"""The command `wxb estimate`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType

from wxb.core.errors import WxbError
from wxb.core.params import load
from wxb.project.completion import name_completer
from wxb.reporting.charts.formatting import duration, size
from wxb.reporting.terminal import show, show_json, show_sentence, table

if TYPE_CHECKING:
    from wxb.project.estimate.estimate import Estimate  # imports torch


def estimate(
    experiment: Annotated[
        str | None,
        typer.Argument(
            help="an experiment of params.yaml; default: all",
            autocompletion=name_completer("experiments"),
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
    from wxb.project.estimate.estimate import LAUNCH, UTILISATION, estimates

    params = load()
    if experiment:
        params.block("experiments", experiment)
    by_stage: dict[str, Estimate] = {}
    for name in [experiment] if experiment else params.experiments:
        try:
            for each in estimates(params, name, timed=timed):
                by_stage.setdefault(each.stage, each)
        except WxbError as error:
            if experiment:
                raise
            print(error, file=sys.stderr)  # the other experiments are still estimated
    results = [*by_stage.values()]
    if as_json:
        show_json([result._asdict() for result in results])
        return
    if not results:
        return
    show(
        _sizes(results),
        "tokens: of a padded text; disk: model + checkpoints during training\n",
        _times(results),
        "",
    )
    if not all(result.is_exact for result in results):
        show_sentence("≤ marks upper bounds: these texts are not tokenized yet.")
    show_sentence(
        f"GPUs: at {UTILISATION:.0%} of the peak on their datasheets, and at least"
        f" {1000 * LAUNCH:.0f} ms per update; without evaluation."
    )


def _sizes(results: list[Estimate]) -> RenderableType:
    header = ["stage", "parameters", "trainable", "updates", "tokens", "FLOPs", "memory", "disk"]
    rows = [
        (
            result.stage,
            f"{result.parameters:,}",
            f"{result.trainable:,}",
            f"{result.updates:,}",
            f"{'' if result.is_exact else '≤ '}{result.length}",
            f"{result.flops:.1e}",
            size(result.memory),
            f"{size(result.model_bytes)} + {size(result.checkpoint_bytes)}",
        )
        for result in results
    ]
    return table(header, rows, title="Work and memory", numbers=True)


def _times(results: list[Estimate]) -> RenderableType:
    header = ["stage", "here", "last run here", *results[0].gpus]
    rows = []
    for result in results:
        last = duration(result.last_cost["seconds"]) if result.last_cost else ""
        gpus = ["too small" if s is None else duration(s) for s in result.gpus.values()]
        seconds = duration(result.seconds) if result.seconds else "-"
        here = f"{seconds} ({result.method})" if result.method else seconds
        rows.append((result.stage, here, last, *gpus))
    return table(header, rows, title="Time", numbers=True)
