"""Verdicts on results at two times: in one line each, as tables for 80 columns, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from wxb.charts.wording import listed, words
from wxb.project import provenance
from wxb.project.reproduction.comparison import INSIDE, Result, Score, Swap, Verdict
from wxb.project.revisions import WorkingTree

SHOWN = 6  # metrics of one score, told one by one
STYLES = {Verdict.SAME: "green", Verdict.WITHIN: "green", Verdict.BEYOND: "red"}
ABSENT = "–"
HERE = WorkingTree().name


class Summary(StrEnum):
    """What became of a result as a whole."""

    MISSING = "missing"  # at one of both times
    NOT_COMPARABLE = "not comparable"
    SAME = "same bytes"
    SCORES = "same scores"  # by weights whose bytes nobody noted at one of both times
    WITHIN = "within noise"
    BEYOND = "beyond noise"
    DIFFERS = "differs"
    KEPT = "kept"  # as the commit has it, and not made here


def summary(result: Result) -> Summary:
    """The verdict on a result, of those on its scores."""
    verdicts = {score.verdict for score in result.scores} - {Verdict.NEW, Verdict.GONE}
    if not verdicts:
        return Summary.MISSING
    if result.kept:
        return Summary.KEPT
    if result.records:
        return Summary.NOT_COMPARABLE
    if result.beyond_noise:
        return Summary.BEYOND
    if verdicts == {Verdict.SAME}:
        return Summary.SAME
    if verdicts <= {Verdict.SAME, Verdict.UNKNOWN_WEIGHTS}:
        return Summary.SCORES
    return Summary.DIFFERS if Verdict.DIFFERS in verdicts else Summary.WITHIN


def line(result: Result, before: str, after: str, remedy: str = "") -> str:
    """The verdict in one line: `study: reproduced within noise of HEAD (03ec366): 7 of 7 ...`.

    `before` and `after` name both times; `remedy` is the command that makes what is lacking here.
    """
    told = summary(result)
    if told is Summary.MISSING:
        gone, new = result.named(Verdict.GONE), result.named(Verdict.NEW)
        if gone and new:
            return f"{result.name}: nothing to compare: gone {listed(gone)}, new {listed(new)}"
        lacking = after if gone else before
        cure = f"; `{remedy}` makes them" if lacking == HERE else ""
        return f"{result.name}: nothing to compare, no results of it {_at(lacking)}{cure}"
    if told is Summary.KEPT:
        return f"{result.name}: kept from {before}, of another profile; `{remedy}` makes it here"
    changed = len(result.params)
    keys = "1 parameter differs" if changed == 1 else f"{changed} parameters differ"
    if told is Summary.NOT_COMPARABLE:
        counts = [f"{what} {a:,} -> {b:,}" for what, (a, b) in result.records.items()]
        why = f"; {keys}" if changed else ""
        return f"{result.name}: not comparable with {before}: {', '.join(counts)}{why}"
    some = any(score.verdict in INSIDE for score in result.scores)
    head = {
        Summary.SAME: f"same bytes as {before}",
        Summary.SCORES: f"same scores as {before}, weights unknown",
        Summary.WITHIN: f"reproduced within noise of {before}",
        Summary.BEYOND: f"{'not all' if some else 'not'} reproduced, beyond noise of {before}",
        Summary.DIFFERS: f"differs from {before}",
    }[told]
    if changed and told not in (Summary.SAME, Summary.SCORES):
        head = f"no reproduction of {before}, as {keys}"
    return f"{result.name}: {head}: {', '.join(_counts(result))}{_machines_word(result)}"


def parts(result: Result, before: str, after: str, remedy: str) -> Iterator[RenderableType]:
    """All there is to tell of a result, its line first."""
    yield Text(line(result, before, after, remedy), style="bold")
    if result.kept:
        return
    if any(score.metric for score in result.scores):
        yield _table(result, before, after)
    others = [(score.name, _others(score)) for score in result.scores if score.others]
    yield from _grid("Other metrics that differ", others)
    swaps = [(swap_sentence(swap, before, after),) for swap in result.swaps]
    yield from _grid("Changed places", swaps)
    yield from _grid(
        "Parameters that differ",
        [(c.key, f"{_setting(c.before)} -> {_setting(c.after)}") for c in result.params],
    )
    if max(map(len, result.seeds)) > 1:
        told = (", ".join(map(str, seeds)) for seeds in result.seeds)
        yield from _grid("Seeds", zip((before, after), told, strict=True))
    machines = (" and ".join(map(provenance.machine, made)) for made in result.machines)
    rows = [pair for pair in zip((before, after), machines, strict=True) if pair[1]]
    yield from _grid("Made on", rows)


def as_json(result: Result, before: str, after: str, remedy: str) -> dict[str, Any]:
    """A result for other programs."""
    return {
        "name": result.name,
        "verdict": summary(result),
        "line": line(result, before, after, remedy),
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
        "records": {what: _both(counts) for what, counts in result.records.items()},
        "machines": _both(result.machines),
    }


def swap_sentence(swap: Swap, before: str, after: str) -> str:
    """Which of two was ahead before, which is now, and whether the test can tell them apart."""

    def noise(sure: bool) -> str:
        return "beyond noise" if sure else "within noise"

    return (
        f"{swap.ahead} is {swap.lead:.3f} ahead of {swap.behind} {_at(before)}"
        f" ({noise(swap.sure)}), and {swap.lead_now:.3f} behind {_at(after)}"
        f" ({noise(swap.sure_now)})"
    )


def _at(time: str) -> str:
    return time if time == HERE else f"at {time}"


def _counts(result: Result) -> Iterator[str]:
    """How many scores are inside their intervals, how many have the same bytes, and which not."""
    both = [s for s in result.scores if s.before is not None and s.after is not None]
    same = f"{len(result.named(Verdict.SAME))} of {len(both)}"
    if summary(result) in (Summary.SAME, Summary.SCORES):
        yield f"{len(both)} of {len(both)}"
    else:
        if judged := [score for score in both if score.metric]:
            inside = sum(score.verdict in INSIDE for score in judged)
            where = "scores inside their 95% intervals"
            where = "score inside its 95% interval" if len(judged) == 1 else where
            yield f"{inside} of {len(judged)} {where}"
        yield f"{same} same bytes"
    for verdict in (Verdict.OTHER_WEIGHTS, Verdict.BEYOND, Verdict.GONE, Verdict.NEW):
        if names := result.named(verdict):
            yield f"{verdict} {listed(names)}"


def _machines_word(result: Result) -> str:
    """Whether both were made on one kind of machine; empty where that is not known."""
    first, second = result.machines
    for key, word in (("cpu", "CPU"), ("capability", "instruction set"), ("torch", "torch")):
        kinds = [{made.get(key) for made in machines} for machines in (first, second)]
        if None in kinds[0] | kinds[1] or not (first and second):
            return ""
        if kinds[0] != kinds[1]:
            # Intervals are those of one training: they cover other test records, no other weights.
            why = (
                ", which trains other weights, as another seed does" if result.beyond_noise else ""
            )
            return f"; other {word}{why}"
    return "; same CPU"


def _table(result: Result, before: str, after: str) -> RenderableType:
    metrics = dict.fromkeys(words(score.metric) for score in result.scores if score.metric)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column(f"{', '.join(metrics)} (95% interval)", no_wrap=True)
    for column in (before, after, "verdict"):
        table.add_column(Text(column), overflow="fold")
    for score in result.scores:
        style = STYLES.get(score.verdict, "")
        then, now = _interval(score.metric, score.before), _value(score.metric, score.after)
        table.add_row(score.name, then, now, Text(score.verdict, style=style))
    return table


def _interval(metric: str, found: Mapping[str, float] | None) -> str:
    if not found or metric not in found:
        return ABSENT
    low, high = found[f"{metric}_low"], found[f"{metric}_high"]
    return f"{found[metric]:.4f} ({low:.4f}–{high:.4f})"


def _value(metric: str, found: Mapping[str, float] | None) -> str:
    return f"{found[metric]:.4f}" if found and metric in found else ABSENT


def _others(score: Score) -> str:
    """The metrics without an interval that differ; of many, the first few."""
    told = [
        f"{words(key)} {_number(then)} -> {_number(now)}"
        for key, (then, now) in score.others.items()
    ]
    more = [f"and {len(told) - SHOWN} more"] if len(told) > SHOWN else []
    return ", ".join([*told[:SHOWN], *more])


def _setting(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _number(value: float | None) -> str:
    if value is None:
        return "absent"
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def _grid(title: str, rows: Any) -> Iterator[RenderableType]:
    """Pairs of a name and what there is to tell of it, under a title; nothing without pairs."""
    grid = Table(box=None, show_header=False, pad_edge=False)
    grid.add_column(overflow="fold")
    grid.add_column(overflow="fold")
    for row in rows:
        grid.add_row(*map(Text, row))
    if grid.row_count:
        yield Group(Text(title, style="bold"), grid)


def _both(pair: Sequence[Any]) -> dict[str, Any]:
    return {"before": pair[0], "after": pair[1]}
