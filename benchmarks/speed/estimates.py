"""Compare what `wxb estimate` says about trainings with what their last runs took.

It needs a trained study, and an idle machine, the one that trained it.
"""

from __future__ import annotations

import wxb  # silences the libraries that are imported below  # noqa: F401

# isort: split

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from wxb.core.errors import WxbError
from wxb.core.params import Params, load
from wxb.project.estimate.estimate import Estimate, estimates
from wxb.project.reproduction import benchmarks

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
MIB = 2**20


@app.command()
def main(
    experiments: Annotated[
        list[str] | None, typer.Argument(help="trained experiments; default: all of params.yaml")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="JSON file for the table")] = None,
) -> None:
    """Estimate trainings with trial batches; print estimates beside the costs of the last runs."""
    params = load()
    names = experiments or [
        name for name, block in params.experiments.items() if not block.is_baseline
    ]
    rows = [*table_rows(all_estimates(params, names))]
    if not rows:
        raise WxbError("found no reports/cost of these experiments; run `make run` first")
    benchmarks.report(rows, output, {"seconds estimated": ".1f", "measured": ".1f"})


def all_estimates(params: Params, names: Iterable[str]) -> Iterable[Estimate]:
    """The estimates of experiments and their backbones, each stage once."""
    stages = {}
    for name in names:
        for estimate in estimates(params, name):
            stages.setdefault(estimate.stage, estimate)
    return stages.values()


def table_rows(stages: Iterable[Estimate]) -> Iterable[dict[str, Any]]:
    """A row for each stage that was run: its estimates and costs."""
    for stage in stages:
        if stage.last_cost:
            yield {
                "stage": f"`{stage.stage}`",
                "updates": stage.updates,
                "seconds estimated": stage.seconds,
                "measured": stage.last_cost["seconds"],
                "MiB estimated": round(stage.memory / MIB),
                "MiB measured": stage.last_cost["peak_memory_mib"],
            }


if __name__ == "__main__":
    benchmarks.run(app)
