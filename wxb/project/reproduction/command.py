"""The command `wxb compare`."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from wxb.core import paths
from wxb.core.errors import WxbError, choices
from wxb.core.params import Params, load
from wxb.project import profiles, revisions
from wxb.project.reproduction import comparison, promise, wording
from wxb.project.reproduction.project import STAGES, Project

ALL = "all"


def compare(
    revision: Annotated[str, typer.Argument(help="a commit, branch or tag")] = "HEAD",
    other: Annotated[
        str | None, typer.Argument(help="another, instead of the working tree")
    ] = None,
    study: Annotated[
        str, typer.Option(help="a study or lesson, pretrain or parity; default: all")
    ] = ALL,
    brief: Annotated[bool, typer.Option("--brief", help="only the verdicts, and the page")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="as JSON, for other programs")] = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="exit with 1 if a score is outside its range")
    ] = False,
) -> None:
    """Compare the results here with those of a commit.

    On the same kind of CPU a rerun must have the same bytes. On another kind, its scores must be
    inside what trainings vary, if several seeds are known; else they are compared with their 95%
    intervals, which are about test records alone. With the parameters of `wxb params tiny` the
    bytes are the same on every x86-64 CPU with AVX2, and the last line says whether they are.

    Example: wxb compare HEAD~1 --study NAME
    """
    params = load()
    before = Project(revisions.commit(revision))
    after = Project(revisions.commit(other) if other else revisions.WorkingTree())
    results = {**before.results, **after.results}
    known = {**params.studies, **params.lessons, **results}
    if study not in (ALL, *known):
        raise WxbError(f"no study or lesson {study!r}{choices(study, known)}")
    names = [name for name in known if name in results] if study == ALL else [study]
    if not other and not any(name in after.results for name in names):
        made = "`make run`" if study == ALL else f"`{_remedy(study, params)}`"
        raise WxbError(f"no results to compare; {made} makes them")
    compared = [comparison.compare(name, before, after, params) for name in names]
    verdicts = [(r, before.name, after.name, _remedy(r.name, params)) for r in compared]
    outside = any(result.is_outside for result in compared)
    kept = None if other else promise.kept()
    if as_json:
        content = {"before": before.name, "after": after.name, "outside": outside}
        listed = [wording.as_json(*each) for each in verdicts]
        content |= {"portable": kept and kept._asdict(), "results": listed}
        print(json.dumps(content, ensure_ascii=False, indent=2))
    else:
        rest = [r for r in compared if wording.summary(r) is wording.Summary.NOT_RUN]
        rest = rest if len(rest) > 1 else []
        console = Console()
        for each in verdicts:
            if each[0] in rest:
                continue
            if brief:
                _print(wording.line(*each))
                continue
            for part in wording.parts(*each):
                console.print(part)
            print()
        if rest:
            _print(wording.not_run(rest, before.name))
        if study in {**params.studies, **params.lessons} and not other:
            print(page(study, params))
    if kept and not as_json:
        _print(kept.line)
    if exit_code and outside:
        raise typer.Exit(1)


def _print(line: str) -> None:
    """Print a line, wrapped between words on a terminal only."""
    console = Console(highlight=False)
    console.print(Text(line), soft_wrap=not console.is_terminal)


def page(name: str, params: Params) -> str:
    """Where the page of a study or lesson is, or what makes it."""
    path = paths.page(name)
    if path.exists():
        return f"Page: {path.resolve()}"
    return f"Page: {path} does not exist; `{_remedy(name, params)}` makes it"


def _remedy(name: str, params: Params) -> str:
    """The command that makes a result."""
    verb = "lesson" if name in params.lessons else "report"
    made = f"dvc repro {STAGES.get(name, f'{verb}@{name}')}"
    if name in {**params.studies, **params.lessons, **STAGES}:
        return made
    return f"wxb params {profile} && {made}" if (profile := profiles.bringing(name)) else made
