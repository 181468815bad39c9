"""Store, score and compare the predictions of systems for the same test records.

Predictions are stored with the gold of their records, so that all results of a system can be
computed from its folder. A system has one run for each seed of training. Scores are means over
runs; details are those of the first run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import stdev
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.files import read_json, read_jsonl, write_json, write_jsonl
from wxb.metrics import DIGITS, LEVEL, TEST
from wxb.metrics.intervals import Difference, Groups, Interval, intervals, paired_difference
from wxb.metrics.scorer import Row, Scorer

PREDICTIONS = "predictions.jsonl"
TEST_SETS = "test-sets.json"

Facts = Mapping[str, Any]  # of a test set, see `clean.test_set_facts`
Run = Iterable[Row]  # the test records with the predictions of the model of one seed


@dataclass(frozen=True)
class SavedRun:
    """A run in a folder that `write` wrote. Each iteration reads its file, to save memory."""

    scorer: Scorer
    folder: Path

    def __iter__(self) -> Iterator[Any]:
        return map(self.scorer.parse, read_jsonl(self.folder / PREDICTIONS))


def metrics(scorer: Scorer, runs: Sequence[Run]) -> dict[str, float]:
    """The flat metrics of reports/metrics: scores as means over runs, and totals of the scorer.

    The headline has an interval, and with several runs a standard deviation over them.
    """
    counts = np.stack([scorer.statistics([*run]) for run in runs], axis=1)
    groups, key = Groups.from_records(counts, _group_names(runs[0])), scorer.HEADLINE
    scores = intervals(groups, scorer.scores, scorer.METRICS)
    sums = groups.sums.sum(axis=0)  # (runs, C)
    result = {name: _round(interval.value) for name, interval in scores.items()}
    result[f"{key}_low"], result[f"{key}_high"] = map(_round, scores[key][1:])
    if len(runs) > 1:
        result[f"{key}_sd"] = _round(stdev(scorer.scores(sums)[key].tolist()))
    return {**result, **scorer.totals(sums)}


def compare(
    scorer: Scorer, systems: Mapping[str, Sequence[Run]], baselines: Collection[str] = ()
) -> dict[str, Any]:
    """Scores with intervals and details of each system, and tests of all pairs by the headline.

    A system has one run for each seed; one run is in memory at a time. `baselines` are marked, and
    in no pair. Raises WxbError unless all runs have the same records.
    """
    names = list(systems)
    records = [*map(scorer.identity, systems[names[0]][0])]
    groups: dict[str, Groups] = {}
    details: dict[str, dict[str, Any]] = {}  # of the first run
    for name, runs in systems.items():
        counts: list[NDArray[Any]] = []
        group_names: list[str] = []
        for run in runs:
            rows = [*run]
            if [*map(scorer.identity, rows)] != records:
                raise WxbError(
                    f"{name} and {names[0]} were scored on different records; evaluate both again"
                )
            if not counts:
                group_names, details[name] = _group_names(rows), scorer.details(rows)
            counts.append(scorer.statistics(rows))
        groups[name] = Groups.from_records(np.stack(counts, axis=1), group_names)
    sums = {name: groups[name].sums.sum(axis=0) for name in names}  # (runs, C)
    return {
        "metrics": {metric.key: metric._asdict() for metric in scorer.METRICS},
        "headline": scorer.HEADLINE,
        "signature": scorer.SIGNATURE,
        "unit": scorer.UNIT,
        "counts": dict(scorer.COUNTS),
        "shares": dict(scorer.SHARES),
        "documents": len(records),
        "groups": len(groups[names[0]].sizes),
        "support": scorer.totals(sums[names[0]])["support"],
        "level": LEVEL,
        "systems": {
            name: {
                **{
                    metric: _rounded(interval)
                    for metric, interval in intervals(
                        groups[name], scorer.scores, scorer.METRICS
                    ).items()
                },
                f"{scorer.HEADLINE}_by_run": [
                    _round(value) for value in scorer.scores(sums[name])[scorer.HEADLINE].tolist()
                ],
                **scorer.totals(sums[name]),
                **details[name],
                **({"baseline": True} if name in baselines else {}),
            }
            for name in names
        },
        "pairs": [
            {
                "a": a,
                "b": b,
                "difference": _rounded(
                    paired_difference(groups[a], groups[b], scorer.scores, scorer.headline)
                ),
            }
            for a, b in combinations([name for name in names if name not in baselines], 2)
        ],
    }


def save(
    scorer: Scorer,
    folder: Path,
    runs_by_set: Mapping[str, Mapping[str, Run]],
    facts: Mapping[str, Facts],
) -> None:
    """Write the runs of each test set to a new folder; `load` and `load_facts` read them.

    Runs are by their subfolder; that of the first is "". TEST, which comes first, is written to
    the folder itself, and other test sets to subfolders. `facts` are those of each test set.
    """
    for name, runs in runs_by_set.items():
        for subfolder, run in runs.items():
            write(scorer, folder / ("" if name == TEST else name) / subfolder, run)
    write_json(folder / TEST_SETS, facts)


def load_facts(folder: Path) -> dict[str, Facts]:
    """The facts about each test set that `save` wrote."""
    facts: dict[str, Facts] = read_json(folder / TEST_SETS)
    return facts


def load(scorer: Scorer, folder: Path) -> dict[str, dict[str, Run]]:
    """Load what `save` wrote: the runs of TEST first, then of the other sets in order of name."""
    folders = sorted(
        p for p in folder.iterdir() if p.is_dir() and not p.name.startswith(paths.SEED)
    )
    return {
        TEST: _runs(scorer, folder),
        **{path.name: _runs(scorer, path) for path in folders},
    }


def write(scorer: Scorer, folder: Path, run: Run) -> None:
    """Write predictions, and the detail files of the scorer, to a new folder."""
    folder.mkdir(parents=True)
    write_jsonl(folder / PREDICTIONS, (row._asdict() for row in run))
    scorer.write_details(folder, [*run])


def read(scorer: Scorer, folder: Path) -> list[Any]:
    """Read the predictions of a folder that `write` wrote."""
    return [*SavedRun(scorer, folder)]


def _runs(scorer: Scorer, folder: Path) -> dict[str, Run]:
    others = {path.name: SavedRun(scorer, path) for path in folder.glob(f"{paths.SEED}*")}
    return {"": SavedRun(scorer, folder), **others}


def _group_names(run: Run) -> list[str]:
    """The group of each row. Prefixes, as an id may equal the name of a group."""
    return [f"+{row.group}" if row.group else f"-{row.id}" for row in run]


def _round(value: float) -> float:
    return round(value, DIGITS)


def _rounded(values: Interval | Difference) -> dict[str, float]:
    return {name: _round(value) for name, value in values._asdict().items()}
