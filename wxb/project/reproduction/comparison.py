"""Compare results of two versions of the project.

On the same type of CPU, a rerun must have the same bytes. On another type, kernels add in another
order, so training ends with other weights, as with another seed. Then each score must be within the
variation between trainings (see ranges.py). If only one seed is known, that variation is unknown:
scores are then compared with their 95% intervals, which only cover the choice of test records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from wxb.project.inventory import headlines
from wxb.project.reproduction.ranges import ROUNDING, Range, Runs, ranges
from wxb.project.reproduction.results import Metrics, Results


class Verdict(StrEnum):
    """The comparison of one score, from the best to the worst."""

    NOT_RUN = "not run"  # it is the committed result
    EQUAL = "equal"  # the same bytes of metrics and model
    ROUNDING = "rounding"  # the same score, except for its last digit
    WITHIN = "within"  # its range
    NEW = "new"
    MISSING = "missing"
    OTHER_RECORDS = "other records"  # other test records, so not comparable
    DIFFERS = "differs"  # no range is known
    OUTSIDE = "outside"  # of its range


class Score(NamedTuple):
    """A metric of an experiment, lesson or backbone in both versions; None if absent."""

    result: str
    name: str
    metric: str
    before: float | None
    after: float | None
    range: Range | None  # for a rerun
    trainings: int  # for the range; 1: it is the 95% interval, 0: there is no range
    verdict: Verdict


def compare(result: str, before: Results, after: Results) -> list[Score]:
    """The scores of one result: those with an interval, else those that differ."""
    first, second = before.metrics(result), after.metrics(result)
    records = before.records(result), after.records(result)
    is_comparable = not all(records) or records[0] == records[1]
    runs = _trainings(result, before)
    seeds = after.study(result).get("seeds", [])
    bounds = ranges(runs, max(1, len(seeds))) if runs else {}
    count = min((len(scores) for system in runs.values() for scores in system.values()), default=1)
    scores = []
    for name in {**first, **second}:
        old, new = first.get(name), second.get(name)
        verdict = None
        if old is None or new is None:
            verdict = Verdict.NEW if old is None else Verdict.MISSING
        elif not is_comparable:
            verdict = Verdict.OTHER_RECORDS
        elif old == new and _are_equal(before.weights(name), after.weights(name)):
            verdict = Verdict.EQUAL if after.has_run(result, name) else Verdict.NOT_RUN
        for metric in _metrics(old or {}, new or {}):
            pair = (old or {}).get(metric), (new or {}).get(metric)
            limits = bounds.get(metric, {}).get(name) or _interval(old or {}, metric)
            trainings = count if name in bounds.get(metric, {}) else int(limits is not None)
            kind = verdict or _verdict(*pair, limits)
            scores.append(Score(result, name, metric, *pair, limits, trainings, kind))
    return scores


def worst(scores: list[Score]) -> dict[str, Verdict]:
    """The worst verdict on each experiment, lesson or backbone."""
    order = [*Verdict]
    verdicts: dict[str, Verdict] = {}
    for score in scores:
        known = verdicts.get(score.name, score.verdict)
        verdicts[score.name] = max(known, score.verdict, key=order.index)
    return verdicts


def _trainings(result: str, results: Results) -> Runs:
    """The known trainings of a result; empty if its scores are outside their ranges.

    The file in reports/seeds may be older than the study, or lack an experiment.
    """
    runs, metrics = results.trainings(result), results.metrics(result)
    is_complete = all(metrics.keys() == scores.keys() for scores in runs.values())
    is_current = is_complete and all(
        metrics[name].get(key) in limits
        for key, bounds in (ranges(runs) if runs else {}).items()
        for name, limits in bounds.items()
    )
    return runs if is_current else {}


def _are_equal(before: str | None, after: str | None) -> bool:
    """Whether the hashes of two models are equal, as far as both are known."""
    return before == after or None in (before, after)


def _metrics(before: Metrics, after: Metrics) -> Iterator[str]:
    """The metrics with an interval; of results without one those that differ, or the first."""
    keys = [*{**before, **after}]
    differing = [key for key in keys if before.get(key) != after.get(key)]
    yield from headlines(before or after) or (before and after and differing) or keys[:1]


def _verdict(before: float | None, after: float | None, limits: Range | None) -> Verdict:
    if before is not None and after is not None and abs(after - before) <= ROUNDING:
        return Verdict.ROUNDING
    if limits is None:
        return Verdict.DIFFERS
    return Verdict.WITHIN if after in limits else Verdict.OUTSIDE


def _interval(metrics: Mapping[str, float], metric: str) -> Range | None:
    """The 95% interval of a metric."""
    low, high = metrics.get(f"{metric}_low"), metrics.get(f"{metric}_high")
    return None if low is None or high is None else Range(low, high)
