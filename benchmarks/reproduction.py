"""How many reruns `wxb compare` calls reproduced, honest ones and broken ones: a simulation.

Scores are drawn: each experiment has a mean, a deviation between trainings, and an interval for
test records. The rules are those of `wxb compare`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from wxb.core import paths
from wxb.core.files import read_json
from wxb.project.reproduction.ranges import Range, ranges
from wxb.reporting.charts.scores import headline
from wxb.reporting.tables import test_sets

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
console = Console(width=100)  # a table is cut nowhere, whatever the terminal

RULES = ("intervals of test records", "variation between trainings")


class Study(NamedTuple):
    """True values of a made-up study, one for each experiment and test set."""

    means: np.ndarray  # (sets, experiments)
    deviations: np.ndarray  # (sets, experiments), between trainings
    reach: np.ndarray  # (sets, experiments), half of a 95% interval for test records


class Shares(NamedTuple):
    """Shares of 1."""

    studies: float  # reruns with every score inside
    scores: float  # scores inside
    found: float  # reruns with one score lowered that have this score outside


def from_seeds(path: Path) -> Study:
    """The means, deviations and intervals of a committed study with several seeds."""
    study = read_json(path)
    metric = headline(study).key
    systems = [list(found["systems"].values()) for found in test_sets(study).values()]
    runs = np.array([[system[f"{metric}_by_run"] for system in each] for each in systems])
    scores = [[system[metric] for system in each] for each in systems]
    reach = np.array([[(s["high"] - s["low"]) / 2 for s in each] for each in scores])
    return Study(runs.mean(axis=-1), runs.std(axis=-1, ddof=1), reach)


def simulate(
    study: Study, seeds: int, rule: str, *, times: int, drop: float, seed: int = 1
) -> Shares:
    """Draw a committed study with `seeds` trainings and its rerun with one, `times` times.

    `drop` is what the broken rerun has less, in one score drawn at random.
    """
    rng = np.random.default_rng(seed)
    sets, experiments = study.means.shape
    whole = single = found = 0
    for _ in range(times):
        shape = (seeds + 1, sets, experiments)
        *runs, rerun = study.means + rng.normal(size=shape) * study.deviations
        committed = np.stack(runs)
        bounds = _bounds(study, committed, rule)
        inside = [[rerun[s, e] in bounds[s][e] for e in range(experiments)] for s in range(sets)]
        whole += np.all(inside)
        single += np.mean(inside)
        s, e = rng.integers(sets), rng.integers(experiments)
        found += rerun[s, e] - drop not in bounds[s][e]
    return Shares(whole / times, single / times, found / times)


def _bounds(study: Study, committed: np.ndarray, rule: str) -> list[list[Range]]:
    """The ranges by test set and experiment; `committed` are the scores of each seed."""
    if rule == RULES[0]:
        low, high = committed[0] - study.reach, committed[0] + study.reach
        return [
            [Range(*ends) for ends in zip(*rows, strict=True)]
            for rows in zip(low, high, strict=True)
        ]
    runs = {
        str(s): {str(e): list(scores) for e, scores in enumerate(committed[:, s].T)}
        for s in range(committed.shape[1])
    }
    return [list(found.values()) for found in ranges(runs).values()]


def studies(committed: Study) -> dict[str, Study]:
    """The studies to simulate: as the seeds of the demo say, and with other deviations."""
    typical = float(np.sqrt((committed.deviations**2).mean()))
    alike = np.full_like(committed.deviations, typical)
    wild = alike.copy()
    wild[:, -1] *= 5
    return {
        "deviations as measured": committed,
        "one deviation for all": committed._replace(deviations=alike),
        "one experiment varies 5 times as much": committed._replace(deviations=wild),
        "trainings vary a third as much": committed._replace(deviations=alike / 3),
    }


@app.command()
def main(
    times: Annotated[int, typer.Option(min=1, help="reruns of each kind")] = 2000,
    drop: Annotated[float, typer.Option(help="what a broken rerun has less in one score")] = 0.1,
) -> None:
    """Simulate studies like that of reports/seeds.json, and their reruns with one other seed."""
    committed = from_seeds(paths.SEEDS)
    table = Table("study", "known seeds", "inside", "studies", "scores", f"-{drop:g} outside")
    for name, study in studies(committed).items():
        for rule, seeds in ((RULES[0], 1), (RULES[1], 3), (RULES[1], 5)):
            shares = simulate(study, seeds, rule, times=times, drop=drop)
            cells = (f"{share:.3f}" for share in shares)
            table.add_row(name, str(seeds), rule, *cells)
    console.print(table)


if __name__ == "__main__":
    app()
