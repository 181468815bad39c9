"""The verdict on results at two times.

A score is within noise if it lies in the 95% interval of the earlier one: what the choice of test
records leaves open. Another kind of CPU, whose kernels add up in another order, moves it less.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from wxb.params import Params
from wxb.project.inventory import headlines
from wxb.project.profiles import Change
from wxb.project.reproduction.project import STAGES, Metrics, Project


class Verdict(StrEnum):
    """What became of one score."""

    SAME = "same bytes"
    OTHER_WEIGHTS = "same scores, other weights"
    UNKNOWN_WEIGHTS = "same scores, weights unknown"
    WITHIN = "within noise"
    BEYOND = "beyond noise"
    DIFFERS = "differs"  # and no interval tells by how much it may
    OTHER_RECORDS = "other test records"
    GONE = "gone"
    NEW = "new"


INSIDE = (Verdict.SAME, Verdict.OTHER_WEIGHTS, Verdict.UNKNOWN_WEIGHTS, Verdict.WITHIN)


class Score(NamedTuple):
    """An experiment, lesson, backbone or architecture at both times; metrics None where absent."""

    name: str
    verdict: Verdict
    metric: str  # the one that has an interval; empty where none has
    before: Metrics | None
    after: Metrics | None

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
    known: bool = True  # whether params.yaml has it

    @property
    def kept(self) -> bool:
        """Whether it only came with the commit: a study of another profile, not made here."""
        return not self.known and {s.verdict for s in self.scores} == {Verdict.UNKNOWN_WEIGHTS}

    def named(self, *verdicts: Verdict) -> list[str]:
        """The scores with one of these verdicts."""
        return [score.name for score in self.scores if score.verdict in verdicts]

    @property
    def beyond_noise(self) -> bool:
        """Whether any score lies outside the interval that it had."""
        return any(score.verdict is Verdict.BEYOND for score in self.scores)


def compare(name: str, before: Project, after: Project, params: Params | None = None) -> Result:
    """One result of two projects; `params` are those of a working tree among them."""
    first, second = before.metrics(name), after.metrics(name)
    records = _changed(before.records(name), after.records(name))
    unlike = {key: pair for key, pair in records.items() if None not in pair}
    kept = after.has_weights(name)
    return Result(
        name,
        [
            _score(
                member,
                first.get(member),
                second.get(member),
                (before.weights(member), after.weights(member)) if kept else ("", ""),
                comparable=not unlike,
            )
            for member in {**first, **second}
        ],
        [] if unlike else _swaps(before.study(name), after.study(name)),
        [Change(k, *pair) for k, pair in _changed(before.params(name), after.params(name)).items()],
        (before.seeds(name), after.seeds(name)),
        unlike,
        (before.machines(name, params), after.machines(name, params)),
        params is None or name in {**params.studies, **params.lessons, **STAGES},
    )


def _score(
    name: str,
    before: Metrics | None,
    after: Metrics | None,
    weights: tuple[str | None, str | None],
    *,
    comparable: bool,
) -> Score:
    """The verdict on one score; `weights` are hashes of its model, equal if it keeps none."""
    found = headlines(before or after or {})
    metric = found[0] if found else ""
    if before is None or after is None:
        verdict = Verdict.NEW if before is None else Verdict.GONE
    elif not comparable:
        verdict = Verdict.OTHER_RECORDS
    elif before == after and None in weights:
        verdict = Verdict.UNKNOWN_WEIGHTS
    elif before == after:
        verdict = Verdict.SAME if weights[0] == weights[1] else Verdict.OTHER_WEIGHTS
    elif metric in after:
        inside = all(
            before[f"{key}_low"] <= after.get(key, math.nan) <= before[f"{key}_high"]
            for key in found
        )
        verdict = Verdict.WITHIN if inside else Verdict.BEYOND
    else:
        verdict = Verdict.DIFFERS
    return Score(name, verdict, metric, before, after)


def _swaps(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Swap]:
    """The pairs of a study whose order is another now."""
    if not before or not after:
        return []
    from wxb.charts import pairs  # takes numpy

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
