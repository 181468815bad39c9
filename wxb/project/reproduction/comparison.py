"""Compare results of two versions of the project.

On the same type of CPU, a rerun must have the same bytes. On another type, kernels add in another
order, so training ends with other weights, as with another seed. Then each score must be within the
variation between trainings (see ranges.py). If only one seed is known, that variation is unknown:
scores are then compared with their 95% intervals, which only cover the choice of test records.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cached_property
from pathlib import PurePath
from typing import Any, NamedTuple

from wxb.core import paths
from wxb.core.params import PARAMS, parse_yaml
from wxb.project import provenance
from wxb.project.inventory import headlines
from wxb.project.reproduction.ranges import ROUNDING, Range, Runs, ranges
from wxb.project.revisions import Tree, WorkingTree

METRICS = paths.METRICS.as_posix()
# Folders of metrics that belong to no study, and the stage that writes them.
STAGES = {paths.LESSONS: "lesson", paths.PRETRAIN: "pretrain"}
EXPERIMENT_STAGES = ("train", "evaluate")

Metrics = Mapping[str, float]


class Results:
    """The results in a tree by name: studies, lessons and `pretrain`."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    @cached_property
    def members(self) -> dict[str, list[PurePath]]:
        """The metrics files of each result: one for each experiment or backbone of it."""
        members: dict[str, list[PurePath]] = {}
        for file in map(PurePath, self.tree.files(METRICS)):
            if file.suffix == ".json":
                is_lesson = file.parent.name == paths.LESSONS
                members.setdefault(file.stem if is_lesson else file.parent.name, []).append(file)
        for name, files in members.items():
            if systems := [*self.study(name).get("systems", [])]:
                # In the order of the study, without files of removed experiments.
                present = [file for file in files if file.stem in systems]
                members[name] = sorted(present, key=lambda file: systems.index(file.stem))
        return members

    def metrics(self, result: str) -> dict[str, Metrics]:
        """The metrics of a result by experiment, lesson or backbone."""
        return {file.stem: self._json(file.as_posix()) for file in self.members.get(result, [])}

    def study(self, name: str) -> dict[str, Any]:
        """The comparison of a study by the stage `compare`; empty if it does not exist."""
        return self._json(provenance.study_file(name))

    def records(self, result: str) -> tuple[float, ...]:
        """Numbers of test records and units of a study, or of test items; empty if unknown."""
        if study := self.study(result):
            return study["documents"], study["support"]
        support = self.metrics(result).get(result, {}).get("support")
        return () if support is None else (support,)

    def trainings(self, study: str) -> Runs:
        """The scores of every seed by metric and experiment; empty if only one seed is known.

        They come from the study, or from the same study in reports/seeds.
        """
        contents = (self.study(study), self._json(paths.seeds(study).as_posix()))
        content = next((each for each in contents if len(each.get("seeds", [])) > 1), None)
        if content is None:
            return {}
        headline = content["headline"]
        test_sets = {headline: content} | {
            f"{name}_{headline}": test_set for name, test_set in content["further"].items()
        }
        return {
            key: {name: system[f"{headline}_by_run"] for name, system in part["systems"].items()}
            for key, part in test_sets.items()
        }

    def has_run(self, result: str, member: str) -> bool:
        """Whether one metrics file was written by a run in this tree.

        True for commits. In a working tree, only a run leaves the cost of a stage.
        """
        if not isinstance(self.tree, WorkingTree):
            return True
        folders = (file.parent.name for file in self.members.get(result, []))
        stage = STAGES.get(next(folders, ""))
        verbs = (stage,) if stage else EXPERIMENT_STAGES
        return any(self.tree.read(paths.cost(verb, member).as_posix()) for verb in verbs)

    def weights(self, name: str) -> str | None:
        """The hash of a model in dvc.lock; None if it has none."""
        return self._hashes.get(paths.model(name).as_posix())

    @cached_property
    def _hashes(self) -> dict[str, str]:
        lock = parse_yaml((self.tree.read("dvc.lock") or b"{}").decode(), PARAMS)
        outs = [out for stage in lock.get("stages", {}).values() for out in stage.get("outs", [])]
        return {out["path"]: out["md5"] for out in outs}

    def _json(self, path: str) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.tree.read(path) or b"{}")
        return content


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
