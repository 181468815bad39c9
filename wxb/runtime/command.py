"""The command line of a stage: `python -m stages.<verb> <name>`."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path

from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.files import publish, write_json
from wxb.core.params import Params, load
from wxb.runtime import costs, gpus, kernels, locks, logs, signals

LINES_SHOWN = 12

# What a stage returns, numbers by their names, is added to its cost.
Main = Callable[[Params, str], Mapping[str, float] | None]


def run(verb: str, main: Main, doc: str | None) -> None:
    """Run a stage with the parameters of params.yaml and the name on the command line.

    The parameters are checked first. Output goes to `logs/<verb>@<name>.log`, and the cost to
    `reports/cost`. Of several processes that train together, only the first does more than `main`.
    Exits with 1 on failure, with 130 on Ctrl-C, and with 143 on SIGTERM.
    """
    if not signals.FIRST:
        with logs.discarded():
            main(load(), sys.argv[1])
        return
    signals.raise_interrupts()
    parser = argparse.ArgumentParser(prog=f"python -m stages.{verb}", description=doc)
    parser.add_argument("name", help="the block of params.yaml to run for")
    name = parser.parse_args().name
    stage = f"{verb}@{name}"
    log = paths.log(stage)
    with locks.exclusive(stage), logs.diverted_to(log) as console:
        started = time.monotonic()
        try:
            params = load()
            kernels.check(params)
            with gpus.reserved(params.processes(stage)):
                more = main(params, name)
            cost = {**costs.of_process(time.monotonic() - started), **(more or {})}
            with publish(paths.cost(verb, name)) as (draft,):
                write_json(draft, cost)
        except KeyboardInterrupt as error:
            signals.ignore_interrupts()
            print("interrupted", flush=True)
            print(f"{stage}: interrupted; {_next(stage)}", file=console)
            sys.exit(143 if isinstance(error, signals.Terminated) else 130)
        except Exception as error:
            if not isinstance(error, WxbError):
                traceback.print_exc()
            print(f"{type(error).__name__}: {error}", flush=True)
            print(_failure(stage, log), file=console)
            sys.exit(1)
        print(f"{stage}: done in {cost['seconds']:.1f} s", file=console)


def _next(stage: str) -> str:
    """What running an interrupted stage again does."""
    from wxb.training import checkpoints

    if checkpoints.kept(stage):
        return "the same command goes on from its last checkpoint"
    return "the same command begins it again"


def _failure(stage: str, log: Path) -> str:
    """The end of the log of a failed stage, and the command that runs it again."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-LINES_SHOWN:]
    return "\n".join(
        [
            f"\n{stage} failed. The last lines of {log}:",
            *(f"  {line}" for line in lines),
            f"Run it again with: dvc repro --single-item {stage}",
        ]
    )
