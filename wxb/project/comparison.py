"""The command `wxb compare`: compare results of two versions of the project.

A rerun on another type of CPU is like one with another seed: its scores must be within the
variation between trainings, or, if only one seed is known, within the 95% intervals. See
docs/comparing-commits.md; benchmarks/reproduction.py simulates the ranges.

From `n` trainings with mean `x` and deviation `s`, the mean of `k` further ones lies within
`x ± t * s * sqrt(1/k + 1/n)` (the prediction interval of a normal variable, t of Student's
distribution). A score is outside only if it is outside two such intervals: a pooled one, with `s`
over the experiments of a test set and Sidak's correction for all scores of the study, and one of
the experiment's own seeds, for those that vary more than others. An experiment whose seeds all have
the same score is not pooled; its rerun must have that score, except for rounding.
"""

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from itertools import groupby
from pathlib import PurePath
from statistics import fmean, variance
from typing import Annotated, Any, NamedTuple

import typer

from wxb.core import paths
from wxb.core.errors import WxbError, choices
from wxb.core.params import load, parse_yaml
from wxb.metrics import DIGITS, LEVEL
from wxb.project import revisions, status
from wxb.project.inventory import headline_keys
from wxb.project.revisions import Tree, WorkingTree, read_json
from wxb.reporting.terminal import show, show_json, table
from wxb.runtime.engine import LOCKFILE

# One unit in the last digit of a score, and the error of binary numbers up to 1,000.
ROUNDING = 10**-DIGITS + 1e-12
# The stages that write the metrics of a folder; those of other folders are of studies.
STAGES = {paths.LESSONS: ["lesson"], paths.PRETRAIN: ["pretrain"]}

Metrics = Mapping[str, float]
Runs = Mapping[str, Mapping[str, Sequence[float]]]  # scores of each seed, by metric and experiment


class Range(NamedTuple):
    """An interval with both ends included."""

    low: float
    high: float

    def __contains__(self, value: object) -> bool:
        return isinstance(value, (int, float)) and self.low <= value <= self.high


def ranges(runs: Runs, trainings: int = 1) -> dict[str, dict[str, Range]]:
    """The ranges that hold all scores of a rerun with probability LEVEL, by metric and experiment.

    `runs` are the known trainings, two or more of each experiment. A score of the rerun is the mean
    of `trainings` new ones. Equal known scores have the range ± ROUNDING. See the module.
    """
    spreads = {
        metric: {n: (len(s) - 1, variance(s)) for n, s in members.items() if len({*s}) > 1}
        for metric, members in runs.items()
    }
    pooled_level = LEVEL ** (1 / max(1, sum(map(len, spreads.values()))))
    own_level = LEVEL ** (1 / len(runs))
    result: dict[str, dict[str, Range]] = {}
    for metric, members in runs.items():
        total_df = sum(df for df, _ in spreads[metric].values())
        squares = sum(df * own_variance for df, own_variance in spreads[metric].values())
        result[metric] = {}
        for name, scores in members.items():
            center, reach = scores[0], ROUNDING
            if name in spreads[metric]:
                df, own_variance = spreads[metric][name]
                center = fmean(scores)
                reach = math.sqrt(1 / trainings + 1 / len(scores)) * max(
                    _two_sided_quantile(pooled_level, total_df) * math.sqrt(squares / total_df),
                    _two_sided_quantile(own_level, df) * math.sqrt(own_variance),
                )
            result[metric][name] = Range(center - reach, center + reach)
    return result


def _two_sided_quantile(level: float, df: int) -> float:
    """The bound that Student's t stays below in absolute value with probability `level`."""
    from scipy.special import stdtrit  # scipy.stats takes a second to import

    return float(stdtrit(df, (1 + level) / 2))


class Results:
    """The results in a tree by name: studies, lessons and `pretrain`."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    @cached_property
    def metrics_files(self) -> dict[str, dict[str, PurePath]]:
        """The metrics files by result, then by experiment, lesson or backbone."""
        metrics_files = defaultdict[str, dict[str, PurePath]](dict)
        for file in map(PurePath, self.tree.files(paths.METRICS.as_posix())):
            if file.suffix == ".json":
                is_lesson = file.parent.name == paths.LESSONS
                metrics_files[file.stem if is_lesson else file.parent.name][file.stem] = file
        return metrics_files

    def metrics_by_member(self, result: str) -> dict[str, Metrics]:
        """The metrics of a result; of a study with a table, those of its systems in order."""
        files = self.metrics_files.get(result, {})
        members = self.study(result).get("systems") or files
        return {name: read_json(self.tree, files[name]) for name in members if name in files}

    def study(self, name: str) -> dict[str, Any]:
        """The comparison of a study by the stage `compare`; empty if it does not exist."""
        return read_json(self.tree, paths.study(name))

    def records_fingerprint(self, result: str) -> tuple[Any, ...]:
        """(records, units, hash or 0) of a study's test set, (items,) of a lesson, else ()."""
        if study := self.study(result):
            return study["documents"], study["support"], study.get("records_sha256", 0)
        support = self.metrics_by_member(result).get(result, {}).get("support")
        return () if support is None else (support,)

    def seed_scores(self, study: str) -> Runs:
        """The headline scores of every seed by metric and experiment; empty without several seeds.

        Metrics of further test sets have the prefix `NAME_`. Scores come from the study, else from
        reports/seeds. That file may be older, or lack an experiment: so the result is empty if the
        study's scores are not within the ranges of the seeds.
        """
        contents = (self.study(study), read_json(self.tree, paths.seeds(study)))
        content = next((each for each in contents if len(each.get("seeds", [])) > 1), None)
        if content is None:
            return {}
        test_sets = {"": content, **{f"{name}_": part for name, part in content["further"].items()}}
        runs = {
            f"{prefix}{key}": {n: system[f"{key}_by_run"] for n, system in part["systems"].items()}
            for prefix, part in test_sets.items()
            for key in [part["headline"]]
        }
        metrics = self.metrics_by_member(study)
        is_current = all(metrics.keys() == scores.keys() for scores in runs.values()) and all(
            metrics[name].get(metric) in limits
            for metric, bounds in ranges(runs).items()
            for name, limits in bounds.items()
        )
        return runs if is_current else {}

    def has_run(self, result: str, member: str) -> bool:
        """Whether one metrics file was written by a run in this tree.

        True if the tree is a commit, or the costs have dvc.lock's hashes, as also after a pull.
        """
        if not isinstance(self.tree, WorkingTree):
            return True
        folder = self.metrics_files[result][member].parent.name
        verbs = STAGES.get(folder, ["train", "evaluate"])
        files = [paths.cost(verb, member) for verb in verbs]
        contents = [self.tree.read(file.as_posix()) or b"" for file in files]
        hashes = [hashlib.md5(content, usedforsecurity=False).hexdigest() for content in contents]
        return hashes == [self.output_hashes.get(file) for file in files]

    @cached_property
    def output_hashes(self) -> dict[PurePath, str]:
        """The hash of each output in dvc.lock."""
        lock = parse_yaml(self.tree.read(str(LOCKFILE)) or b"{}", LOCKFILE)
        outs = [out for stage in lock.get("stages", {}).values() for out in stage.get("outs", [])]
        return {PurePath(out["path"]): out["md5"] for out in outs}


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


def judged_scores(result: str, before: Results, after: Results) -> Iterator[Score]:
    """Yield a score for each member and each metric that has an interval.

    Without any, for those that differ, else for the first. Its range comes from the seeds of
    `before`; with one seed, it is the 95% interval in `before`.
    """
    first, second = before.metrics_by_member(result), after.metrics_by_member(result)
    records = before.records_fingerprint(result), after.records_fingerprint(result)
    has_same_records = all(a == b for a, b in zip(*records, strict=False) if a and b)
    runs = before.seed_scores(result)
    seeds = after.study(result).get("seeds", [])
    bounds = ranges(runs, max(1, len(seeds))) if runs else {}
    count = min((len(scores) for system in runs.values() for scores in system.values()), default=1)
    for name in {**first, **second}:
        old, new = first.get(name, {}), second.get(name, {})
        hashes = [version.output_hashes.get(paths.MODELS / name) for version in (before, after)]
        has_same_model = None in hashes or hashes[0] == hashes[1]
        verdict = None  # on all metrics
        if not (old and new):
            verdict = Verdict.MISSING if old else Verdict.NEW
        elif not has_same_records:
            verdict = Verdict.OTHER_RECORDS
        elif old == new and has_same_model:
            verdict = Verdict.EQUAL if after.has_run(result, name) else Verdict.NOT_RUN
        keys = [*{**old, **new}]
        differing = [key for key in keys if old.get(key) != new.get(key)]
        for metric in headline_keys(old or new) or (old and new and differing) or keys[:1]:
            limits: Range | None = None
            trainings = 0
            if name in bounds.get(metric, {}):
                limits, trainings = bounds[metric][name], count
            elif f"{metric}_low" in old:
                limits, trainings = Range(old[f"{metric}_low"], old[f"{metric}_high"]), 1
            values = old.get(metric), new.get(metric)
            own_verdict = verdict or _range_verdict(*values, limits)
            yield Score(result, name, metric, *values, limits, trainings, own_verdict)


def worst_verdicts(scores: Iterable[Score]) -> dict[tuple[str, str], Verdict]:
    """The worst verdict on each experiment, lesson or backbone, by study (or lesson) and name."""
    verdicts: dict[tuple[str, str], Verdict] = {}
    for score in sorted(scores, key=lambda score: [*Verdict].index(score.verdict)):
        verdicts[score.result, score.name] = score.verdict
    return verdicts


def _range_verdict(before: float | None, after: float | None, limits: Range | None) -> Verdict:
    """ROUNDING if nearly equal, DIFFERS without limits, else whether `after` is WITHIN them."""
    if before is not None and after is not None and abs(after - before) <= ROUNDING:
        return Verdict.ROUNDING
    if limits is None:
        return Verdict.DIFFERS
    return Verdict.WITHIN if after in limits else Verdict.OUTSIDE


def compare_command(
    revision: Annotated[str, typer.Argument(help="a commit, branch or tag")] = "HEAD",
    other: Annotated[
        str | None, typer.Argument(help="another one, instead of the working tree")
    ] = None,
    study: Annotated[
        str, typer.Option(help="a study or lesson, or pretrain; default: all")
    ] = "all",
    brief: Annotated[bool, typer.Option("--brief", help="print only the summary")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="as JSON, for other programs")] = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="exit with 1 if a score is outside its range")
    ] = False,
) -> None:
    """Compare the results in the working tree with those of a commit.

    On the same type of CPU, a rerun has the same bytes: `equal`. On another type, a score is
    `within` the variation between trainings, or `outside`. If a study has one seed, there and in
    reports/seeds, the range is the 95% interval, which only covers the choice of test records.

    Example: wxb compare HEAD~1 --study NAME
    """
    params = load()
    before = Results(revisions.commit(revision))
    after = Results(revisions.commit(other) if other else WorkingTree())
    known = {**params.studies, **params.lessons, **before.metrics_files, **after.metrics_files}
    if study not in ("all", *known):
        raise WxbError(f"no study or lesson {study!r}{choices(study, known)}")
    names = [*known] if study == "all" else [study]
    if not any(name in after.metrics_files for name in names):
        name = "" if study == "all" else f" STUDY={study}"
        raise WxbError(f"{after.tree.name}: no results to compare; run `make run{name}` first")
    scores = [score for name in names for score in judged_scores(name, before, after)]
    is_outside = any(score.verdict is Verdict.OUTSIDE for score in scores)
    if as_json:
        versions = {"before": before.tree.name, "after": after.tree.name}
        as_dicts = [score._asdict() for score in scores]
        show_json({**versions, "outside": is_outside, "scores": as_dicts})
    else:
        run = [score for score in scores if score.verdict is not Verdict.NOT_RUN and not brief]
        for result, own in groupby(run, key=lambda score: score.result):
            header = [result, "before", "after", "range", "verdict"]
            show(table(header, _rows(own)), "")
        show(f"{study}, compared with {before.tree.name}: {_verdict_counts(scores)}")
    if not other:
        status.print_stale(names, params.lessons)
    if exit_code and is_outside:
        raise typer.Exit(1)


def _verdict_counts(scores: Sequence[Score]) -> str:
    """Count members by worst verdict: "2 of 3 have the same bytes, 1 within (ranges: 3 seeds)"."""
    counts = Counter(worst_verdicts(scores).values())
    not_run, equal = counts.pop(Verdict.NOT_RUN, 0), counts.pop(Verdict.EQUAL, 0)
    reruns = equal + counts.total()
    parts = [f"{equal} of {reruns} have the same bytes"] if reruns else []
    parts += [f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict]]
    parts += [f"{not_run} not run here"] if not_run else []
    trainings = {s.trainings for s in scores if s.verdict in (Verdict.WITHIN, Verdict.OUTSIDE)}
    kinds = [f"{n} seeds" if n > 1 else "95% intervals of test records" for n in sorted(trainings)]
    parts[-1] += f" (ranges: {', '.join(kinds)})" if kinds else ""
    return ", ".join(parts)


def _rows(scores: Iterable[Score]) -> Iterator[list[str]]:
    """A row with the name of each experiment, then one per metric: scores, range and verdict."""
    for name, own in groupby(scores, key=lambda score: score.name):
        yield [name]
        for score in own:
            values = (score.before, score.after)
            formatted = ["–" if value is None else f"{value:.4f}" for value in values]
            limits = f"{score.range.low:.4f} to {score.range.high:.4f}" if score.range else "–"
            yield [f"  {score.metric}", *formatted, limits, score.verdict.value]
