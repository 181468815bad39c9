"""The command `wxb compare`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import typer

from wxb.core import paths
from wxb.core.errors import WxbError, choices
from wxb.core.params import Params, load
from wxb.project import revisions
from wxb.project.reproduction.comparison import Results, Score, Verdict, compare, worst
from wxb.reporting.terminal import show, show_json, table

ALL = "all"
HIDDEN = (Verdict.NOT_RUN,)  # in the table
HEADER = ("result", "metric", "before", "after", "range", "verdict")


def compare_results(
    revision: Annotated[str, typer.Argument(help="a commit, branch or tag")] = "HEAD",
    other: Annotated[
        str | None, typer.Argument(help="another one, instead of the working tree")
    ] = None,
    study: Annotated[str, typer.Option(help="a study or lesson, or pretrain; default: all")] = ALL,
    brief: Annotated[
        bool, typer.Option("--brief", help="print only the summary, and the page")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="as JSON, for other programs")] = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="exit with 1 if a score is outside its range")
    ] = False,
) -> None:
    """Compare the results in the working tree with those of a commit.

    On the same type of CPU, a rerun has the same bytes: `equal`. On another type, a score is
    `within` the variation between trainings, or `outside`. Without several seeds in reports/seeds,
    the range is the 95% interval, which only covers the choice of test records.

    Example: wxb compare HEAD~1 --study NAME
    """
    params = load()
    before = Results(revisions.commit(revision))
    after = Results(revisions.commit(other) if other else revisions.WorkingTree())
    known = {**params.studies, **params.lessons, **before.members, **after.members}
    if study not in (ALL, *known):
        raise WxbError(f"no study or lesson {study!r}{choices(study, known)}")
    names = [*known] if study == ALL else [study]
    if not any(name in after.members for name in names):
        name = "" if study == ALL else f" STUDY={study}"
        raise WxbError(f"{after.tree.name}: no results to compare; run `make run{name}` first")
    scores = [score for name in names for score in compare(name, before, after)]
    is_outside = any(score.verdict is Verdict.OUTSIDE for score in scores)
    if as_json:
        show_json(
            {
                "before": before.tree.name,
                "after": after.tree.name,
                "outside": is_outside,
                "scores": [score._asdict() for score in scores],
            }
        )
    else:
        rows = [_row(score, study) for score in scores if score.verdict not in HIDDEN]
        if rows and not brief:
            show(table(HEADER, rows), "")
        show(_summary(study, scores, before.tree.name))
        if study in {**params.studies, **params.lessons} and not other:
            print(page_line(study, params))
    if exit_code and is_outside:
        raise typer.Exit(1)


def page_line(name: str, params: Params) -> str:
    """The path of the page of a study or lesson, or the command that writes it."""
    path = paths.page(name)
    if path.exists():
        return f"Page: {path.resolve()}"
    verb = "lesson" if name in params.lessons else "report"
    return f"Page: {path} does not exist; run `dvc repro {verb}@{name}`"


def _summary(study: str, scores: Sequence[Score], before: str) -> str:
    """One line: how many results have the same bytes, and the number of each other verdict."""
    results = {score.result for score in scores}
    verdicts = [
        verdict
        for result in results
        for verdict in worst([score for score in scores if score.result == result]).values()
    ]
    counts = Counter(verdicts)
    not_run, equal = counts.pop(Verdict.NOT_RUN, 0), counts.pop(Verdict.EQUAL, 0)
    reruns = len(verdicts) - not_run
    parts = [f"{equal} of {reruns} have the same bytes"] if reruns else []
    parts += [f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict]]
    parts += [f"{not_run} not run here"] if not_run else []
    trainings = max((score.trainings for score in scores), default=0)
    ranges = f"{trainings} seeds" if trainings > 1 else "95% intervals of test records"
    has_ranges = counts[Verdict.WITHIN] or counts[Verdict.OUTSIDE]
    return f"{study}, compared with {before}: {', '.join(parts)}" + (
        f" (ranges: {ranges})" if has_ranges else ""
    )


def _row(score: Score, study: str) -> list[str]:
    is_clear = score.result in (study, score.name)
    name = score.name if is_clear else f"{score.result}/{score.name}"
    values = ["–" if value is None else f"{value:.4f}" for value in (score.before, score.after)]
    limits = f"{score.range.low:.4f}–{score.range.high:.4f}" if score.range else "–"
    return [name, score.metric, *values, limits, score.verdict.value]
