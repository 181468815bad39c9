"""Score the predictions of systems, store both, and compare systems on the same test records.

A system has one run for each seed of training. Scores are means over runs.
"""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

import numpy as np
from pydantic import TypeAdapter

from wxb.core.errors import WxbError
from wxb.core.files import read_json, read_jsonl, write_json, write_jsonl
from wxb.metrics import DIGITS, LEVEL, TEST
from wxb.metrics.intervals import Difference, Groups, Interval, holm, intervals, paired_difference
from wxb.metrics.scorer import Scorer

PREDICTIONS, SCORES, SUMS = "predictions.jsonl", "scores.json", "sums.json"

Run = Sequence[Any]  # rows of one seed's model: the test records in one order, with predictions


class Evaluation(NamedTuple):
    """The results of a system on a test set."""

    scores: dict[str, Any]  # the METRICS with intervals, the headline of each run, and details
    groups: Groups  # for paired tests
    records: str  # a hash of the test records, which two systems must share
    facts: Mapping[str, Any]  # of the test set, see `clean.test_set_facts`


def evaluate(
    scorer: Scorer,
    runs: Sequence[Run],
    model_metrics: Sequence[Mapping[str, float]] = (),
    facts: Mapping[str, Any] | None = None,  # of the test set
) -> Evaluation:
    """Score the runs of a system, and hash its records; `model_metrics` join the details."""
    statistics = [scorer.statistics(run) for run in runs]
    # Prefixes, as an id may equal the name of a group.
    names = [f"+{row.group}" if row.group else f"-{row.id}" for row in runs[0]]
    groups = Groups.from_records(statistics, names)
    numbers = model_metrics or [{} for _ in runs]
    details = [{**scorer.details(run), **more} for run, more in zip(runs, numbers, strict=True)]
    sums = groups.total()
    headline = scorer.headline(sums).key
    by_run = scorer.scores(sums)[headline].tolist()
    by_metric = intervals(groups, scorer.scores, scorer.metrics(sums))
    scores = {
        **{key: _rounded(interval) for key, interval in by_metric.items()},
        f"{headline}_by_run": [round(value, DIGITS) for value in by_run],
        **{key: _mean([each[key] for each in details]) for key in details[0]},
    }
    content = json.dumps([(row.id, row.input, row.gold) for row in runs[0]])
    return Evaluation(scores, groups, hashlib.sha256(content.encode()).hexdigest(), facts or {})


def metrics(scorer: Scorer, evaluation: Evaluation) -> dict[str, float]:
    """The flat metrics of reports/metrics: scores, and those details that are single numbers.

    The headline has the interval `_low` to `_high`, and with several runs the deviation `_sd`.
    """
    scores, sums = evaluation.scores, evaluation.groups.total()
    key = scorer.headline(sums).key
    result = {metric.key: scores[metric.key]["value"] for metric in scorer.metrics(sums)}
    result |= {f"{key}_{end}": scores[key][end] for end in ("low", "high")}
    by_run = scorer.scores(sums)[key].tolist()
    if len(by_run) > 1:
        result[f"{key}_sd"] = round(stdev(by_run), DIGITS)
    return {**result, **{name: n for name, n in scores.items() if isinstance(n, int | float)}}


def compare(
    scorer: Scorer, systems: Mapping[str, Mapping[str, Evaluation]], baselines: Collection[str] = ()
) -> dict[str, Any]:
    """Scores of systems and tests of their pairs on `test`, and by further test set as `further`.

    `systems` has results of each on the same test sets. Baselines are marked and in no pair. The
    p values are of the headline, corrected over all test sets. Raises WxbError if records differ.
    """
    by_set = {}
    for test_set in next(iter(systems.values())):
        evaluations = {name: by_test_set[test_set] for name, by_test_set in systems.items()}
        by_set[test_set] = _test_set_comparison(scorer, evaluations, baselines)
    differences = [pair["difference"] for each in by_set.values() for pair in each["pairs"]]
    corrected = holm([difference["p_value"] for difference in differences])
    for difference, p in zip(differences, corrected, strict=True):
        difference["corrected"] = round(p, DIGITS)
    return {**by_set.pop(TEST), "further": by_set}


def _test_set_comparison(
    scorer: Scorer, systems: Mapping[str, Evaluation], baselines: Collection[str]
) -> dict[str, Any]:
    """Titles of metrics, stored scores, differences of non-baseline `pairs`, the first's facts.

    P values are not corrected. Raises WxbError if systems were scored on different records.
    """
    first, *_ = systems
    scores, groups, records, facts = systems[first]
    headline = scorer.headline(groups.total())
    for name, other in systems.items():
        if other.records != records:
            fault = f"{name} and {first} were scored on different records"
            raise WxbError(f"{fault}; evaluate both again")
    pairs = []
    for a, b in combinations([name for name in systems if name not in baselines], 2):
        both = systems[a].groups, systems[b].groups
        difference = paired_difference(*both, scorer.scores, headline)
        pairs.append({"a": a, "b": b, "difference": _rounded(difference)})
    return {
        "metrics": {
            metric.key: {
                "key": metric.key,
                "title": metric.title,
                "lower_is_better": metric.lower_is_better,
                "scale": metric.high,
                "decimals": metric.decimals,
            }
            for metric in scorer.metrics(groups.total())
        },
        "headline": headline.key,
        "signature": scorer.SIGNATURE,
        "unit": scorer.UNIT,
        "counts": {key: title for key, title in scorer.COUNTS.items() if key in scores},
        "shares": dict(scorer.SHARES),
        "records_sha256": records,
        "documents": int(groups.sizes.sum()),
        "groups": len(groups.sizes),
        "support": scores["support"],
        "level": LEVEL,
        "systems": {
            name: {**system.scores, **({"baseline": True} if name in baselines else {})}
            for name, system in systems.items()
        },
        "pairs": pairs,
        **facts,
    }


def save(folder: Path, evaluations: Mapping[str, Evaluation]) -> None:
    """Write scores.json, and the groups to sums.json in JSON Lines, with a line per test set."""
    content = {name: each._asdict() for name, each in evaluations.items()}
    lines = []
    for name, each in content.items():
        sums, sizes = each.pop("groups")
        by_name = {key: values.tolist() for key, values in sums.items()}
        lines.append({"test_set": name, "sizes": sizes.tolist(), "sums": by_name})
    write_json(folder / SCORES, content)
    write_jsonl(folder / SUMS, lines)


def load(folder: Path) -> dict[str, Evaluation]:
    """The results that `save` wrote, by test set."""
    content = read_json(folder / SCORES)
    for line in read_jsonl(folder / SUMS):
        sums = {key: np.array(values) for key, values in line["sums"].items()}
        content[line["test_set"]]["groups"] = Groups(sums, np.array(line["sizes"]))
    return {name: Evaluation(**each) for name, each in content.items()}


def save_predictions(scorer: Scorer, folder: Path, run: Run) -> None:
    """Write the predictions of a run, and the files that its page shows; creates the folder."""
    write_jsonl(folder / PREDICTIONS, (row._asdict() for row in run))
    scorer.copy_files(folder, run)


def load_predictions(scorer: Scorer, folder: Path) -> list[Any]:
    """The rows of predictions that `save_predictions` wrote, of type `scorer.ROW`."""
    rows: TypeAdapter[Any] = TypeAdapter(scorer.ROW)
    return [rows.validate_python(row) for row in read_jsonl(folder / PREDICTIONS)]


def _mean(values: Sequence[Any]) -> Any:
    """The rounded mean of numbers, an integer for counts; the first of tables."""
    if isinstance(values[0], int):
        return round(fmean(values))
    return round(fmean(values), DIGITS) if isinstance(values[0], float) else values[0]


def _rounded(values: Interval | Difference) -> dict[str, float]:
    return {name: round(value, DIGITS) for name, value in values._asdict().items()}
