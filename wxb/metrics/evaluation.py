"""Runs of systems on the same test records: kept, scored, and compared.

A system's predictions are kept with the gold of the same records, so that everything said about it
can be computed from its folder alone. Where it was trained with several seeds there is a run of
each: scores are means over runs, details those of the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from statistics import stdev
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.files import read_jsonl, write_jsonl
from wxb.metrics import DIGITS, LEVEL, TEST
from wxb.metrics.bootstrap import by_group, intervals, paired
from wxb.metrics.scorer import Row, Scorer

PREDICTIONS = "predictions.jsonl"

Run = Sequence[Row]  # the test records with what the model of one seed predicted


def metrics(scorer: Scorer, runs: Sequence[Run], *, resamples: int, seed: int) -> dict[str, float]:
    """The flat metrics of reports/metrics: means over runs, and what the scorer counts.

    The headline has its interval, and with several runs its standard deviation over them.
    """
    table, key = _table(scorer, runs), scorer.HEADLINE
    scores = intervals(table, scorer.scores, resamples=resamples, seed=seed, level=LEVEL)
    sums = table.sum(axis=0)  # (runs, C)
    spread = (
        {f"{key}_sd": _round(stdev(scorer.scores(sums)[key].tolist()))} if len(runs) > 1 else {}
    )
    return {
        **{name: _round(interval.value) for name, interval in scores.items()},
        f"{key}_low": _round(scores[key].low),
        f"{key}_high": _round(scores[key].high),
        **spread,
        **scorer.totals(sums),
    }


def compare(
    scorer: Scorer, systems: Mapping[str, Sequence[Run]], *, resamples: int, seed: int
) -> dict[str, Any]:
    """Scores with intervals and details of each system; every pair tested by the headline.

    A system has a run for each seed that it was trained with. Raises WxbError when not all runs
    judged the same records.
    """
    names = list(systems)
    first = systems[names[0]][0]
    for name, runs in systems.items():
        if any([*map(scorer.same, run)] != [*map(scorer.same, first)] for run in runs):
            raise WxbError(
                f"{name} and {names[0]} were scored on different records; evaluate both again"
            )
    tables = {name: _table(scorer, runs) for name, runs in systems.items()}
    return {
        "metrics": {metric.key: metric._asdict() for metric in scorer.METRICS},
        "headline": scorer.HEADLINE,
        "signature": scorer.SIGNATURE,
        "unit": scorer.UNIT,
        "counts": dict(scorer.COUNTS),
        "shares": dict(scorer.SHARES),
        "documents": len(first),
        "groups": len(tables[names[0]]),
        "support": scorer.totals(tables[names[0]].sum(axis=0))["support"],
        "resamples": resamples,
        "seed": seed,
        "level": LEVEL,
        "systems": {
            name: {
                **{
                    metric: _rounded(interval._asdict())
                    for metric, interval in intervals(
                        tables[name], scorer.scores, resamples=resamples, seed=seed, level=LEVEL
                    ).items()
                },
                f"{scorer.HEADLINE}_by_run": [
                    _round(value)
                    for value in scorer.scores(tables[name].sum(axis=0))[scorer.HEADLINE].tolist()
                ],
                **scorer.totals(tables[name].sum(axis=0)),
                **scorer.details(runs[0]),
            }
            for name, runs in systems.items()
        },
        "pairs": [
            {
                "a": a,
                "b": b,
                "difference": _rounded(
                    paired(
                        tables[a],
                        tables[b],
                        lambda sums: scorer.scores(sums)[scorer.HEADLINE],
                        resamples=resamples,
                        seed=seed,
                        level=LEVEL,
                    )._asdict()
                ),
            }
            for a, b in combinations(names, 2)
        ],
    }


def save(scorer: Scorer, folder: Path, judged: Mapping[str, Mapping[str, Run]]) -> None:
    """Write the runs of each test set to a new folder; `load` reads them again.

    Runs are by their place in the folder of their set, the first on top (""). TEST, which comes
    first, lies on top of the folder, other sets below it.
    """
    for name, runs in judged.items():
        for place, run in runs.items():
            write(scorer, folder / ("" if name == TEST else name) / place, run)


def load(scorer: Scorer, folder: Path) -> dict[str, dict[str, Run]]:
    """What was given to `save`: the runs of TEST first, then of the other sets by their names."""
    folders = sorted(
        p for p in folder.iterdir() if p.is_dir() and not p.name.startswith(paths.SEED)
    )
    return {
        TEST: _runs(scorer, folder),
        **{path.name: _runs(scorer, path) for path in folders},
    }


def write(scorer: Scorer, folder: Path, run: Run) -> None:
    """Write predictions, and the details that the scorer tells, to a new folder."""
    folder.mkdir(parents=True)
    write_jsonl(folder / PREDICTIONS, (row._asdict() for row in run))
    scorer.write_details(folder, run)


def read(scorer: Scorer, folder: Path) -> list[Any]:
    """The predictions in a folder that `write` wrote."""
    return [scorer.parse(row) for row in read_jsonl(folder / PREDICTIONS)]


def _runs(scorer: Scorer, folder: Path) -> dict[str, Run]:
    others = {path.name: read(scorer, path) for path in folder.glob(f"{paths.SEED}*")}
    return {"": read(scorer, folder), **others}


def _table(scorer: Scorer, runs: Sequence[Run]) -> NDArray[Any]:
    """Statistics of each group and run: (groups, runs, C)."""
    table = np.stack([scorer.statistics(run) for run in runs], axis=1)
    # Ids and groups could have the same names.
    return by_group(table, [f"+{r.group}" if r.group else f"-{r.id}" for r in runs[0]])


def _round(value: float) -> float:
    return round(value, DIGITS)


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {name: _round(value) for name, value in values.items()}
