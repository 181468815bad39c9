"""Format comparisons: a verdict of a sentence or two, tables for 80 columns, and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from wxb.project import provenance
from wxb.project.reproduction.comparison import (
    INSIDE,
    Change,
    Comparison,
    Difference,
    Score,
    Swap,
    Verdict,
)
from wxb.project.revisions import WorkingTree
from wxb.reporting.charts.formatting import listed, shortened, words
from wxb.reporting.terminal import Row, grid, table

SHOWN = 6  # most metrics of one score
STYLES = {Verdict.SAME: "green", Verdict.INSIDE: "green", Verdict.OUTSIDE: "red"}
ABSENT = "–"
HERE = WorkingTree().name


class Summary(StrEnum):
    """The verdict on a result, from those on its scores."""

    MISSING = "missing"  # in one of both versions
    NOT_RUN = "not run here"
    NOT_COMPARABLE = "not comparable"
    SAME = "same bytes"
    SCORES = "same scores"  # a hash of weights is unknown
    INSIDE = "inside"
    OUTSIDE = "outside"
    DIFFERS = "differs"


def summary(result: Comparison) -> Summary:
    """The verdict on a result."""
    verdicts = {score.verdict for score in result.scores} - {Verdict.NEW, Verdict.GONE}
    if not verdicts:
        return Summary.MISSING
    if verdicts == {Verdict.NOT_RUN}:
        return Summary.NOT_RUN
    if result.records:
        return Summary.NOT_COMPARABLE
    if result.is_outside:
        return Summary.OUTSIDE
    verdicts -= {Verdict.NOT_RUN}
    if verdicts == {Verdict.SAME}:
        return Summary.SAME
    if verdicts <= {Verdict.SAME, Verdict.UNKNOWN_WEIGHTS}:
        return Summary.SCORES
    return Summary.DIFFERS if Verdict.DIFFERS in verdicts else Summary.INSIDE


def verdict_line(result: Comparison, before: str, after: str, remedy: str = "") -> str:
    """The name and the verdict in sentences: `NAME: reproduced. Another type of CPU ...`.

    `before` and `after` are names of the versions; `remedy` is the command that runs the result.
    """
    return f"{result.name}: {_verdict(result, before, after, remedy)}"


def _verdict(result: Comparison, before: str, after: str, remedy: str) -> str:
    kind = summary(result)
    if kind is Summary.MISSING:
        return _missing(result, before, after, remedy)
    if kind is Summary.NOT_RUN:
        return f"not run here; these are the results of {before}. `{remedy}` runs it."
    changed = len(result.params)
    keys = "1 parameter differs" if changed == 1 else f"{changed} parameters differ"
    if kind is Summary.NOT_COMPARABLE:
        counts = [f"{unit} {a:,} -> {b:,}" for unit, (a, b) in result.records.items()]
        suffix = f"; {keys}" if changed else ""
        return f"not comparable with {before}: {', '.join(counts)}{suffix}."
    is_same = kind in (Summary.SAME, Summary.SCORES)
    if changed and not is_same:
        head = f"not a rerun of {before}: {keys}."
    else:
        head = f"{_answer(result, kind)}. {_expectation(result, kind, before)}"
    is_rerun = not changed and result.difference is Difference.NONE
    facts = [_same_bytes(result, kind)] if is_same or is_rerun else []
    facts += [] if is_same else _inside(result)
    return " ".join([head, *facts, *_other_scores(result)])


def is_new(result: Comparison) -> bool:
    """Whether the first version has nothing of a result."""
    return summary(result) is Summary.MISSING and not result.names_with(Verdict.GONE)


def _missing(result: Comparison, before: str, after: str, remedy: str) -> str:
    """The verdict if one version lacks the result."""
    gone, new = result.names_with(Verdict.GONE), result.names_with(Verdict.NEW)
    if gone and new:
        return f"nothing to compare: gone {listed(gone)}, new {listed(new)}."
    if gone and after == HERE:
        return f"no results here; run `{remedy}`."
    return f"{after if gone else before} has no results to compare with."


def _answer(result: Comparison, kind: Summary) -> str:
    """The verdict in a few words."""
    if kind in (Summary.SAME, Summary.SCORES):
        return "reproduced"
    if result.difference is Difference.NONE:
        return "not reproduced"
    if kind is Summary.DIFFERS:
        return "undecided"
    if result.trainings == 1:
        return "undecided" if kind is Summary.OUTSIDE else "no difference found"
    return "not reproduced" if kind is Summary.OUTSIDE else "reproduced"


def _expectation(result: Comparison, kind: Summary, before: str) -> str:
    """How the machines differ, and so what a rerun must reproduce."""
    is_same = kind in (Summary.SAME, Summary.SCORES)
    match result.difference:
        case Difference.NONE:
            return f"Same type of CPU as {before}, so the bytes must be the same:"
        case Difference.UNKNOWN if is_same:
            return f"Compared with {before},"
        case Difference.UNKNOWN:
            machines = f"The CPUs of this run and {before} are not both known"
        case difference:
            machines = f"Another {difference} than {before}"
    if is_same:
        return f"{machines}, and still"
    if kind is Summary.DIFFERS:
        return f"{machines}, and no interval is known."
    if result.trainings == 1:
        return f"{machines}; one seed does not show the variation between trainings."
    return f"{machines}, so scores may vary as those of {result.trainings} seeds do:"


def _same_bytes(result: Comparison, kind: Summary) -> str:
    """The number of scores with the same bytes of metrics and of weights, if these are files."""
    count = sum(map(_is_rerun, result.scores))
    if kind is Summary.SCORES:
        return f"{count} of {count} scores are the same (hashes of weights unknown)."
    same = f"{len(result.names_with(Verdict.SAME))} of {count}"
    return (
        f"{same} are." if result.difference is Difference.NONE else f"{same} have the same bytes."
    )


def _inside(result: Comparison) -> list[str]:
    """The number of scores inside their ranges, and the names of the others."""
    scores = [score for score in result.scores if score.metric and _is_rerun(score)]
    if not scores:
        return []
    inside = sum(score.verdict in INSIDE for score in scores)
    verb, ranges = "is", "its 95% interval (test records)"
    if len(scores) > 1:
        verb, ranges = "are", "their 95% intervals (test records)"
    if result.trainings > 1:
        ranges = f"the variation of {result.trainings} seeds"
        if not result.params and result.difference is not Difference.NONE:
            ranges = "that variation"
    outside = result.names_with(Verdict.OUTSIDE)
    names = f", not {listed(outside)}" if outside else ""
    return [f"{inside} of {len(scores)} {verb} inside {ranges}{names}."]


def not_run_line(results: Sequence[Comparison], before: str, *, is_all: bool) -> str:
    """One sentence for results that were not run here; `is_all`: nothing was."""
    if is_all:
        return f"Nothing was run here, so nothing is compared: all results are those of {before}."
    return f"Not run here: {listed([r.name for r in results])}; these are the results of {before}."


def _other_scores(result: Comparison) -> Iterator[str]:
    """The scores that do not count for the verdict."""
    for verdict, label in (
        (Verdict.OTHER_WEIGHTS, "Same scores, other weights"),
        (Verdict.NOT_RUN, "Not run here"),
        (Verdict.GONE, "Gone"),
        (Verdict.NEW, "New"),
    ):
        if names := result.names_with(verdict):
            yield f"{label}: {listed(names)}."


def _is_rerun(score: Score) -> bool:
    return score.verdict not in (Verdict.NEW, Verdict.GONE, Verdict.NOT_RUN)


def details(result: Comparison, before: str, after: str, remedy: str) -> Iterator[RenderableType]:
    """The verdict line and all tables of a result."""
    yield Text(verdict_line(result, before, after, remedy), style="bold")
    if summary(result) is Summary.NOT_RUN:
        return
    if any(score.metric for score in result.scores):
        yield _scores(result, before, after)
    others = [(score.name, _others(score)) for score in result.scores if score.others]
    yield from _section("Other metrics that differ", others)
    swaps = [(swap_sentence(swap, before, after),) for swap in result.swaps]
    yield from _section("Changes of order", swaps, columns=1)
    params = [
        (change.key, f"{_setting(change.before)} -> {_setting(change.after)}")
        for change in result.params
    ]
    yield from _section("Parameters that differ", params)
    if max(map(len, result.seeds)) > 1:
        seeds = [", ".join(map(str, seeds)) for seeds in result.seeds]
        yield from _section("Seeds", zip((before, after), seeds, strict=True))
    machines = [" and ".join(map(provenance.machine_text, side)) for side in result.machines]
    rows = [row for row in zip((before, after), machines, strict=True) if row[1]]
    yield from _section("Machines", rows)


def as_json(result: Comparison, before: str, after: str, remedy: str) -> dict[str, Any]:
    """A comparison as a JSON object; `before`, `after` and `remedy`: see `verdict_line`."""
    return {
        "name": result.name,
        "verdict": summary(result),
        "line": verdict_line(result, before, after, remedy),
        "scores": {
            score.name: {
                "verdict": score.verdict,
                "metric": score.metric,
                "before": score.before,
                "after": score.after,
            }
            for score in result.scores
        },
        "swaps": [swap._asdict() for swap in result.swaps],
        "params": [change._asdict() for change in result.params],
        "seeds": _both(result.seeds),
        "records": {unit: _both(counts) for unit, counts in result.records.items()},
        "machines": _both(result.machines),
    }


def swap_sentence(swap: Swap, before: str, after: str) -> str:
    """How far one experiment leads another in both versions, and what the tests found."""
    return (
        f"{swap.ahead} and {swap.behind}: {swap.lead:+.3f} {_at(before)} ({swap.finding}),"
        f" {-swap.lead_now:+.3f} {_at(after)} ({swap.finding_now})"
    )


def _at(version: str) -> str:
    return version if version == HERE else f"at {version}"


def _scores(result: Comparison, before: str, after: str) -> RenderableType:
    """The table of scores in both versions, with ranges and verdicts."""
    metrics = dict.fromkeys(words(score.metric) for score in result.scores if score.metric)
    seeds = f"range of a rerun, from {result.trainings} seeds"
    ranges = seeds if result.trainings > 1 else "95% interval"
    rows: list[Row] = []
    for score in result.scores:
        verdict = Text(score.verdict, style=STYLES.get(score.verdict, ""))
        rows.append((score.name, *score_cells(score), verdict))
    return table([f"{', '.join(metrics)} ({ranges})", before, after, "verdict"], rows)


def score_cells(score: Score) -> tuple[str, str]:
    """The main metric of a score in both versions, the first with its range."""
    old, new = _value(score.metric, score.before), _value(score.metric, score.after)
    limits = f" ({score.range.low:.4f}–{score.range.high:.4f})" if score.range else ""
    return old + limits, new


def change_line(change: Change) -> str:
    """A parameter with its values in both versions: `KEY: 1 -> 2`."""
    return f"{change.key}: {_setting(change.before)} -> {_setting(change.after)}"


def _section(title: str, rows: Iterable[Row], *, columns: int = 2) -> Iterator[RenderableType]:
    """A grid with a title; nothing if there are no rows."""
    if rows := list(rows):
        yield grid(rows, columns=columns, title=title)


def _value(metric: str, metrics: Mapping[str, float] | None) -> str:
    return f"{metrics[metric]:.4f}" if metrics and metric in metrics else ABSENT


def _others(score: Score) -> str:
    """The other metrics of a score that differ; only the first if they are many."""
    changes = [
        f"{words(key)} {_number(old)} -> {_number(new)}" for key, (old, new) in score.others.items()
    ]
    return shortened(changes, SHOWN)


def _setting(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _number(value: float | None) -> str:
    if value is None:
        return "absent"
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def _both(pair: Sequence[Any]) -> dict[str, Any]:
    return {"before": pair[0], "after": pair[1]}
