"""Simulate how often `wxb compare` calls a rerun reproduced, for correct and for broken reruns.

Scores are random: each experiment has a mean, a deviation between trainings, and an interval for
test records. The rules are those of `wxb compare`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer

from wxb.core import paths
from wxb.core.files import read_json
from wxb.project import benchmarks
from wxb.project.comparison import Range, ranges
from wxb.reporting.pairs import headline, test_sets

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)

RULES = ("intervals of test records", "variation between trainings")


class Study(NamedTuple):
    """True values of a simulated study, for each experiment and test set."""

    means: np.ndarray  # (sets, experiments)
    deviations: np.ndarray  # (sets, experiments), between trainings
    reach: np.ndarray  # (sets, experiments), half of a 95% interval for test records


class Shares(NamedTuple):
    """Shares of reruns or scores within or outside the ranges of a rule."""

    studies: float  # reruns with every score inside
    scores: float  # scores inside
    detected: float  # reruns with one lowered score that have this score outside


def from_seeds(path: Path) -> Study:
    """The means, deviations and intervals of a committed study with several seeds."""
    study = read_json(path)
    metric = headline(study).key
    systems = [list(results["systems"].values()) for results in test_sets(study).values()]
    runs = np.array([[system[f"{metric}_by_run"] for system in members] for members in systems])
    scores = [[system[metric] for system in members] for members in systems]
    reach = np.array([[(score["high"] - score["low"]) / 2 for score in row] for row in scores])
    return Study(runs.mean(axis=-1), runs.std(axis=-1, ddof=1), reach)


def simulate(
    study: Study, seeds: int, rule: str, *, times: int, drop: float, seed: int = 1
) -> Shares:
    """Draw a committed study with `seeds` trainings and a rerun with one, `times` times.

    In a broken rerun, one random score is lower by `drop`.
    """
    rng = np.random.default_rng(seed)
    sets, experiments = study.means.shape
    studies = scores = detected = 0
    for _ in range(times):
        shape = (seeds + 1, sets, experiments)
        *runs, rerun = study.means + rng.normal(size=shape) * study.deviations
        committed = np.stack(runs)
        bounds = _bounds(study, committed, rule)
        inside = [[rerun[s, e] in bounds[s][e] for e in range(experiments)] for s in range(sets)]
        studies += np.all(inside)
        scores += np.mean(inside)
        s, e = rng.integers(sets), rng.integers(experiments)
        detected += rerun[s, e] - drop not in bounds[s][e]
    return Shares(studies / times, scores / times, detected / times)


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
    return [list(by_experiment.values()) for by_experiment in ranges(runs).values()]


def variants(committed: Study) -> dict[str, Study]:
    """The studies to simulate: the committed one, and others with other deviations."""
    typical = float(np.sqrt((committed.deviations**2).mean()))
    equal = np.full_like(committed.deviations, typical)
    one_larger = equal.copy()
    one_larger[:, -1] *= 5
    return {
        "deviations as measured": committed,
        "one deviation for all": committed._replace(deviations=equal),
        "one experiment varies 5 times as much": committed._replace(deviations=one_larger),
        "trainings vary a third as much": committed._replace(deviations=equal / 3),
    }


@app.command()
def main(
    times: Annotated[int, typer.Option(min=1, help="reruns of each kind")] = 2000,
    drop: Annotated[float, typer.Option(help="difference of one score of a broken rerun")] = 0.1,
    output: Annotated[Path | None, typer.Option(help="JSON file for the table")] = None,
) -> None:
    """Simulate studies like reports/seeds/ner.json, and their reruns with another seed."""
    committed = from_seeds(paths.seeds("ner"))
    rows = []
    for name, study in variants(committed).items():
        for rule, seeds in ((RULES[0], 1), (RULES[1], 3), (RULES[1], 5)):
            shares = simulate(study, seeds, rule, times=times, drop=drop)
            rows.append(
                {
                    "deviations": name,
                    "seeds": seeds,
                    "a score is inside": rule,
                    "honest reruns with all scores inside": shares.studies,
                    "scores inside": shares.scores,
                    f"a score lowered by {drop:g} is outside": shares.detected,
                }
            )
    benchmarks.report(rows, output, times=times)


if __name__ == "__main__":
    benchmarks.run(app)
