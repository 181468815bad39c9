"""Verdicts on results at two times: a sentence or two each, tables for 80 columns, and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from wxb.project import provenance
from wxb.project.reproduction.comparison import (
    INSIDE,
    Difference,
    Result,
    Score,
    Swap,
    Verdict,
)
from wxb.project.revisions import WorkingTree
from wxb.reporting.charts.formatting import listed, words

SHOWN = 6  # metrics of one score, listed one by one
STYLES = {Verdict.SAME: "green", Verdict.INSIDE: "green", Verdict.OUTSIDE: "red"}
ABSENT = "–"
HERE = WorkingTree().name


class Summary(StrEnum):
    """The verdict on a result as a whole."""

    MISSING = "missing"  # at one of both times
    NOT_RUN = "not run here"
    NOT_COMPARABLE = "not comparable"
    SAME = "same bytes"
    SCORES = "same scores"  # of weights whose hash is unknown at one of both times
    INSIDE = "inside"
    OUTSIDE = "outside"
    DIFFERS = "differs"


def summary(result: Result) -> Summary:
    """The verdict on a result, of those on its scores."""
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


def line(result: Result, before: str, after: str, remedy: str = "") -> str:
    """The verdict, and which question it answers: `NAME: reproduced. Another kind of CPU ...`.

    `before` and `after` name both times; `remedy` is the command that makes what is lacking here.
    """
    return f"{result.name}: {_verdict(result, before, after, remedy)}"


def _verdict(result: Result, before: str, after: str, remedy: str) -> str:
    kind = summary(result)
    if kind is Summary.MISSING:
        return _missing(result, before, after, remedy)
    if kind is Summary.NOT_RUN:
        return f"nothing was run here; these are the results of {before}. `{remedy}` runs it."
    changed = len(result.params)
    keys = "1 parameter differs" if changed == 1 else f"{changed} parameters differ"
    if kind is Summary.NOT_COMPARABLE:
        counts = [f"{what} {a:,} -> {b:,}" for what, (a, b) in result.records.items()]
        why = f"; {keys}" if changed else ""
        return f"not comparable with {before}: {', '.join(counts)}{why}."
    same = kind in (Summary.SAME, Summary.SCORES)
    if changed and not same:
        head = f"not a rerun of {before}: {keys}."
    else:
        head = f"{_answer(result, kind)}. {_question(result, kind, before)}"
    facts = [_bytes(result, kind)] if same or result.difference is Difference.NONE else []
    facts += [] if same else _within(result)
    return " ".join([head, *facts, *_remaining(result)])


def _missing(result: Result, before: str, after: str, remedy: str) -> str:
    """What one side has no results of."""
    gone, new = result.named(Verdict.GONE), result.named(Verdict.NEW)
    if gone and new:
        return f"nothing to compare: gone {listed(gone)}, new {listed(new)}."
    if gone and after == HERE:
        return f"no results here; `{remedy}` makes them."
    return f"{after if gone else before} has no results of it to compare with."


def _answer(result: Result, kind: Summary) -> str:
    """The verdict in a word or two."""
    if kind in (Summary.SAME, Summary.SCORES):
        return "reproduced"
    if result.difference is Difference.NONE:
        return "not reproduced"
    if kind is Summary.DIFFERS:
        return "undecided"
    if result.trainings == 1:
        return "undecided" if kind is Summary.OUTSIDE else "no difference found"
    return "not reproduced" if kind is Summary.OUTSIDE else "reproduced"


def _question(result: Result, kind: Summary, before: str) -> str:
    """On what machine the rerun was, and so what it must reproduce."""
    match result.difference:
        case Difference.NONE:
            return f"Same kind of CPU as {before}, so the bytes must be the same:"
        case Difference.UNKNOWN:
            where = f"Which CPUs this run and {before} had is not known"
            if kind in (Summary.SAME, Summary.SCORES):
                return f"Compared with {before},"
        case difference:
            where = f"Another {difference} than {before}"
    if kind in (Summary.SAME, Summary.SCORES):
        return f"{where}, and still"
    if kind is Summary.DIFFERS:
        return f"{where}, and no interval is known."
    if result.trainings == 1:
        return f"{where}; one seed does not show how trainings vary."
    return f"{where}, where trainings vary as {result.trainings} seeds do:"


def _bytes(result: Result, kind: Summary) -> str:
    """How many scores have the same bytes: metrics, and weights where they are kept."""
    run = [score for score in result.scores if _was_run(score)]
    if kind is Summary.SCORES:
        return f"{len(run)} of {len(run)} scores are the same (hashes of weights unknown)."
    same = f"{len(result.named(Verdict.SAME))} of {len(run)}"
    return (
        f"{same} are." if result.difference is Difference.NONE else f"{same} have the same bytes."
    )


def _within(result: Result) -> list[str]:
    """How many scores are inside their ranges, and which are not."""
    judged = [score for score in result.scores if score.metric and _was_run(score)]
    if not judged:
        return []
    inside = sum(score.verdict in INSIDE for score in judged)
    several = len(judged) > 1
    where = f"{'their' if several else 'its'} 95% interval{'s' if several else ''} (test records)"
    if result.trainings > 1:
        where = f"what {result.trainings} seeds vary"
        if not result.params and result.difference is not Difference.NONE:
            where = "that variation"
    outside = result.named(Verdict.OUTSIDE)
    names = f", not {listed(outside)}" if outside else ""
    return [f"{inside} of {len(judged)} {'are' if several else 'is'} inside {where}{names}."]


def not_run(results: Sequence[Result], before: str) -> str:
    """The results that are those of a commit, in one sentence."""
    names = listed([result.name for result in results])
    return f"nothing was run here of {names}; these are the results of {before}."


def _remaining(result: Result) -> Iterator[str]:
    """The scores that are no part of the verdict."""
    for verdict, words_ in (
        (Verdict.OTHER_WEIGHTS, "Same scores of other weights"),
        (Verdict.NOT_RUN, "Not run here"),
        (Verdict.GONE, "Gone"),
        (Verdict.NEW, "New"),
    ):
        if names := result.named(verdict):
            yield f"{words_}: {listed(names)}."


def _was_run(score: Score) -> bool:
    return score.verdict not in (Verdict.NEW, Verdict.GONE, Verdict.NOT_RUN)


def parts(result: Result, before: str, after: str, remedy: str) -> Iterator[RenderableType]:
    """The verdict on a result, and every table behind it."""
    yield Text(line(result, before, after, remedy), style="bold")
    if summary(result) is Summary.NOT_RUN:
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


def _table(result: Result, before: str, after: str) -> RenderableType:
    metrics = dict.fromkeys(words(score.metric) for score in result.scores if score.metric)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    ranges = f"range of a rerun, from {result.trainings} seeds"
    what = ranges if result.trainings > 1 else "95% interval"
    table.add_column(f"{', '.join(metrics)} ({what})", overflow="fold")
    for column in (before, after, "verdict"):
        table.add_column(Text(column), overflow="fold")
    for score in result.scores:
        style = STYLES.get(score.verdict, "")
        then, now = _value(score.metric, score.before), _value(score.metric, score.after)
        then += f" ({score.range.low:.4f}–{score.range.high:.4f})" if score.range else ""
        table.add_row(score.name, then, now, Text(score.verdict, style=style))
    return table


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
