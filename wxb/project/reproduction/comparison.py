"""The verdict on results at two times.

Two questions can be asked of a rerun. On the same kind of CPU: are the bytes the same? On another
kind, whose kernels add up in another order, training ends with other weights, as with another seed:
is each score within the variation between trainings (see ranges.py)? Where only one seed is known,
so is no such variation: scores are then compared with their 95% intervals, which cover the choice
of test records and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from wxb.core.params import Params
from wxb.project.inventory import headlines
from wxb.project.profiles import Change
from wxb.project.reproduction.project import Metrics, Project
from wxb.project.reproduction.ranges import Range, Runs, ranges


class Verdict(StrEnum):
    """What became of one score."""

    SAME = "same bytes"
    OTHER_WEIGHTS = "same scores, other weights"
    UNKNOWN_WEIGHTS = "same scores, weights unknown"
    INSIDE = "inside"  # its range
    OUTSIDE = "outside"
    DIFFERS = "differs"  # and has no range
    OTHER_RECORDS = "other test records"
    NOT_RUN = "not run here"  # the committed result
    GONE = "gone"
    NEW = "new"


INSIDE = (Verdict.SAME, Verdict.OTHER_WEIGHTS, Verdict.UNKNOWN_WEIGHTS, Verdict.INSIDE)


class Difference(StrEnum):
    """In what the machines of two runs differ."""

    NONE = ""
    CPU = "kind of CPU"
    CAPABILITY = "instruction set"
    TORCH = "version of torch"
    UNKNOWN = "unknown"


KEYS = {"cpu": Difference.CPU, "capability": Difference.CAPABILITY, "torch": Difference.TORCH}


class Score(NamedTuple):
    """An experiment, lesson, backbone or architecture at both times; metrics None where absent."""

    name: str
    verdict: Verdict
    metric: str  # the one that has an interval; empty where none has
    before: Metrics | None
    after: Metrics | None
    range: Range | None = None  # in which the metric of a rerun should lie

    @property
    def others(self) -> dict[str, tuple[float | None, float | None]]:
        """The other metrics that differ, bounds of the interval aside: value before, and after.

        None are told where there is nothing to compare.
        """
        if self.before is None or self.after is None or self.verdict is Verdict.OTHER_RECORDS:
            return {}
        told = {self.metric, f"{self.metric}_low", f"{self.metric}_high"} if self.metric else set()
        differing = _changed(self.before, self.after)
        return {key: pair for key, pair in differing.items() if key not in told}


class Swap(NamedTuple):
    """Two experiments that changed places, and whether the paired test told them apart."""

    ahead: str  # before, by `lead`, which was beyond noise or not
    behind: str
    lead: float
    sure: bool
    lead_now: float  # of the other one
    sure_now: bool


class Result(NamedTuple):
    """A study (or lesson, or all pretraining, or all of parity) at both times."""

    name: str
    scores: Sequence[Score]
    swaps: Sequence[Swap]
    params: Sequence[Change]  # of what it is made from
    seeds: tuple[list[int], list[int]]
    records: Mapping[str, tuple[int, int]]  # counts over the test records that differ
    machines: tuple[list[dict[str, str]], list[dict[str, str]]]
    trainings: int = 1  # of each experiment, from which the ranges are; of one they can not be

    def named(self, *verdicts: Verdict) -> list[str]:
        """The scores with one of these verdicts."""
        return [score.name for score in self.scores if score.verdict in verdicts]

    @property
    def is_outside(self) -> bool:
        """Whether any score lies outside its range."""
        return any(score.verdict is Verdict.OUTSIDE for score in self.scores)

    @property
    def difference(self) -> Difference:
        """In what the machines of both times differ."""
        first, second = self.machines
        for key, difference in KEYS.items():
            kinds = [{made.get(key) for made in machines} for machines in (first, second)]
            if None in kinds[0] | kinds[1] or not (first and second):
                return Difference.UNKNOWN
            if kinds[0] != kinds[1]:
                return difference
        return Difference.NONE


def compare(name: str, before: Project, after: Project, params: Params | None = None) -> Result:
    """One result of two projects; `params` are those of a working tree among them."""
    first, second = before.metrics(name), after.metrics(name)
    records = _changed(before.records(name), after.records(name))
    unlike = {key: pair for key, pair in records.items() if None not in pair}
    has_weights = after.has_weights(name)
    runs = _trainings(name, before)
    bounds = ranges(runs, max(1, len(after.seeds(name)))) if runs else {}
    return Result(
        name,
        [
            _score(
                member,
                first.get(member),
                second.get(member),
                (before.weights(member), after.weights(member)) if has_weights else ("", ""),
                {key: found[member] for key, found in bounds.items() if member in found}
                or _intervals(first.get(member, {})),
                comparable=not unlike,
                has_run=after.has_run(name, member),
            )
            for member in {**first, **second}
        ],
        [] if unlike else _swaps(before.study(name), after.study(name)),
        [Change(k, *pair) for k, pair in _changed(before.params(name), after.params(name)).items()],
        (before.seeds(name), after.seeds(name)),
        unlike,
        (before.machines(name, params), after.machines(name, params)),
        min((len(scores) for found in runs.values() for scores in found.values()), default=1),
    )


def _trainings(name: str, project: Project) -> Runs:
    """The known trainings of a result, if what the project has may be one of them; else empty.

    reports/seeds.json may be older than the study, or lack an experiment.
    """
    runs, metrics = project.trainings(name), project.metrics(name)
    is_whole = all(metrics.keys() == known.keys() for known in runs.values())
    is_current = is_whole and all(
        metrics[member].get(key) in known
        for key, bounds in (ranges(runs) if runs else {}).items()
        for member, known in bounds.items()
    )
    return runs if is_current else {}


def _intervals(metrics: Metrics) -> dict[str, Range]:
    """The 95% intervals of those metrics that have one."""
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
    """The verdict on one score; `weights` are hashes of its model, equal if it keeps none."""
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
        inside = all(after.get(key) in found for key, found in bounds.items())
        verdict = Verdict.INSIDE if inside else Verdict.OUTSIDE
    else:
        verdict = Verdict.DIFFERS
    if not has_run and verdict in (Verdict.SAME, Verdict.UNKNOWN_WEIGHTS):
        verdict = Verdict.NOT_RUN
    return Score(name, verdict, metric, before, after, bounds.get(metric))


def _swaps(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Swap]:
    """The pairs of a study whose order is another now."""
    if not before or not after:
        return []
    from wxb.reporting.charts import pairs  # takes numpy

    now = pairs.between(pairs.results(after))
    return [
        Swap(
            then.a,
            then.b,
            then.value,
            then.beyond_noise,
            -turned.value,
            turned.beyond_noise,
        )
        for then in pairs.results(before)
        if then.value and (turned := now.get((then.a, then.b))) and turned.value < 0
    ]


def _changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The keys whose values differ, with both; None for one that is absent."""
    values = {key: (before.get(key), after.get(key)) for key in {**before, **after}}
    return {key: pair for key, pair in values.items() if pair[0] != pair[1]}
