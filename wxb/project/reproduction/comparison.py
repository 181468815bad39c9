"""Compare results of two versions of the project.

On the same type of CPU, a rerun must have the same bytes. On another type, kernels add in another
order, so training ends with other weights, as with another seed. Then each score must be within the
variation between trainings (see ranges.py). If only one seed is known, that variation is unknown:
scores are then compared with their 95% intervals, which only cover the choice of test records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from wxb.core.params import Params
from wxb.project.inventory import headlines
from wxb.project.reproduction.ranges import Range, Runs, ranges
from wxb.project.reproduction.results import Metrics, Results


class Verdict(StrEnum):
    """The comparison of one score."""

    SAME = "same bytes"
    OTHER_WEIGHTS = "same scores, other weights"
    UNKNOWN_WEIGHTS = "same scores, weights unknown"
    INSIDE = "inside"  # within its range
    OUTSIDE = "outside"
    DIFFERS = "differs"  # without a range
    OTHER_RECORDS = "other test records"
    NOT_RUN = "not run here"  # it is the committed result
    GONE = "gone"
    NEW = "new"


INSIDE = (Verdict.SAME, Verdict.OTHER_WEIGHTS, Verdict.UNKNOWN_WEIGHTS, Verdict.INSIDE)


class Change(NamedTuple):
    """A key of params.yaml (dotted) with another value, and both values."""

    key: str
    before: Any
    after: Any


class Difference(StrEnum):
    """How the machines of two runs differ."""

    NONE = ""
    CPU = "type of CPU"
    CAPABILITY = "instruction set"
    TORCH = "version of torch"
    UNKNOWN = "unknown"


KEYS = {"cpu": Difference.CPU, "capability": Difference.CAPABILITY, "torch": Difference.TORCH}


class Score(NamedTuple):
    """The metrics of an experiment, lesson, backbone or architecture in both versions."""

    name: str
    verdict: Verdict
    metric: str  # the one with an interval; empty if none has one
    before: Metrics | None  # None if absent
    after: Metrics | None
    range: Range | None = None  # for this metric in a rerun

    @property
    def others(self) -> dict[str, tuple[float | None, float | None]]:
        """The other metrics that differ, without bounds of intervals: value before, and after.

        Empty if the scores cannot be compared.
        """
        if self.before is None or self.after is None or self.verdict is Verdict.OTHER_RECORDS:
            return {}
        main = {self.metric, f"{self.metric}_low", f"{self.metric}_high"} if self.metric else set()
        differing = _changed(self.before, self.after)
        return {key: pair for key, pair in differing.items() if key not in main}


class Swap(NamedTuple):
    """Two experiments whose order changed, with what the paired tests found."""

    ahead: str  # before
    behind: str
    lead: float  # of `ahead`, before
    finding: str
    lead_now: float  # of `behind`
    finding_now: str


class Comparison(NamedTuple):
    """One result (a study, a lesson or all pretraining) in both versions."""

    name: str
    scores: Sequence[Score]
    swaps: Sequence[Swap]
    params: Sequence[Change]  # of the blocks that it depends on
    seeds: tuple[list[int], list[int]]
    records: Mapping[str, tuple[int, int]]  # counts of the test records that differ
    machines: tuple[list[dict[str, str]], list[dict[str, str]]]
    trainings: int = 1  # of each experiment, for the ranges; 1 if they are 95% intervals

    def names_with(self, verdict: Verdict) -> list[str]:
        """The names of the scores with this verdict."""
        return [score.name for score in self.scores if score.verdict is verdict]

    @property
    def is_outside(self) -> bool:
        """Whether any score lies outside its range."""
        return any(score.verdict is Verdict.OUTSIDE for score in self.scores)

    @property
    def difference(self) -> Difference:
        """The first of KEYS in which the machines of both versions differ.

        UNKNOWN if a machine lacks it or a key before it, or a version has no known machine.
        """
        first, second = self.machines
        for key, difference in KEYS.items():
            values = [{machine.get(key) for machine in side} for side in self.machines]
            if None in values[0] | values[1] or not (first and second):
                return Difference.UNKNOWN
            if values[0] != values[1]:
                return difference
        return Difference.NONE


def compare(name: str, before: Results, after: Results, params: Params | None = None) -> Comparison:
    """Compare one result of two versions; `params` are those of the working tree, if it is one."""
    first, second = before.metrics(name), after.metrics(name)
    records = _changed(before.records(name), after.records(name))
    differing = {key: pair for key, pair in records.items() if None not in pair}
    has_weights = after.has_weights(name)
    runs = _trainings(name, before)
    bounds = ranges(runs, max(1, len(after.seeds(name)))) if runs else {}
    return Comparison(
        name,
        [
            _score(
                member,
                first.get(member),
                second.get(member),
                (before.weights(member), after.weights(member)) if has_weights else ("", ""),
                {key: limits[member] for key, limits in bounds.items() if member in limits}
                or _intervals(first.get(member, {})),
                comparable=not differing,
                has_run=after.has_run(name, member),
            )
            for member in {**first, **second}
        ],
        [] if differing else _swaps(before.study(name), after.study(name)),
        [Change(k, *pair) for k, pair in _changed(before.params(name), after.params(name)).items()],
        (before.seeds(name), after.seeds(name)),
        differing,
        (before.machines(name, params), after.machines(name, params)),
        min((len(scores) for system in runs.values() for scores in system.values()), default=1),
    )


def _trainings(name: str, results: Results) -> Runs:
    """The known trainings of a result; empty if its scores are outside their ranges.

    The file in reports/seeds may be older than the study, or lack an experiment.
    """
    runs, metrics = results.trainings(name), results.metrics(name)
    is_complete = all(metrics.keys() == scores.keys() for scores in runs.values())
    is_current = is_complete and all(
        metrics[member].get(key) in limits
        for key, bounds in (ranges(runs) if runs else {}).items()
        for member, limits in bounds.items()
    )
    return runs if is_current else {}


def _intervals(metrics: Metrics) -> dict[str, Range]:
    """The 95% intervals of the metrics that have one."""
    return {key: Range(metrics[f"{key}_low"], metrics[f"{key}_high"]) for key in headlines(metrics)}


def _score(
    name: str,
    before: Metrics | None,
    after: Metrics | None,
    weights: tuple[str | None, str | None],
    bounds: Mapping[str, Range],
    *,
    comparable: bool,
    has_run: bool,
) -> Score:
    """Compare one score; `weights` are hashes of its model in both versions."""
    metric = next(iter(headlines(before or after or {})), "")
    if before is None or after is None:
        verdict = Verdict.NEW if before is None else Verdict.GONE
    elif not comparable:
        verdict = Verdict.OTHER_RECORDS
    elif before == after and None in weights:
        verdict = Verdict.UNKNOWN_WEIGHTS
    elif before == after:
        verdict = Verdict.SAME if weights[0] == weights[1] else Verdict.OTHER_WEIGHTS
    elif metric in after:
        is_inside = all(after.get(key) in limits for key, limits in bounds.items())
        verdict = Verdict.INSIDE if is_inside else Verdict.OUTSIDE
    else:
        verdict = Verdict.DIFFERS
    if not has_run and verdict in (Verdict.SAME, Verdict.UNKNOWN_WEIGHTS):
        verdict = Verdict.NOT_RUN
    return Score(name, verdict, metric, before, after, bounds.get(metric))


def _swaps(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Swap]:
    """The pairs of a study whose order has changed."""
    if not before or not after:
        return []
    from wxb.reporting.charts import pairs  # imports numpy

    old_pairs, new_pairs = pairs.corrected_pairs(before), pairs.corrected_pairs(after)
    new_by_names = pairs.pairs_by_names(new_pairs)
    return [
        Swap(
            old.a,
            old.b,
            old.value,
            old.finding(len(old_pairs)),
            -new.value,
            new.finding(len(new_pairs)),
        )
        for old in old_pairs
        if old.value and (new := new_by_names.get((old.a, old.b))) and new.value < 0
    ]


def _changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The keys whose values differ, with both values; None for an absent one."""
    values = {key: (before.get(key), after.get(key)) for key in {**before, **after}}
    return {key: pair for key, pair in values.items() if pair[0] != pair[1]}
