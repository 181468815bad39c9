"""The command `wxb compare`."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console

from wxb.errors import WxbError, choices
from wxb.params import Params, load
from wxb.project import profiles, revisions
from wxb.project.reproduction import comparison, promise, wording
from wxb.project.reproduction.project import STAGES, Project

ALL = "all"


def compare(
    revision: Annotated[str, typer.Argument(help="a commit, branch or tag")] = "HEAD",
    other: Annotated[
        str | None, typer.Argument(help="another, in place of the working tree")
    ] = None,
    study: Annotated[
        str, typer.Option(help="a study or lesson, pretrain or parity; default: all")
    ] = ALL,
    brief: Annotated[bool, typer.Option("--brief", help="one line for each study")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="as JSON, for other programs")] = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="exit with 1 if a score is beyond noise")
    ] = False,
) -> None:
    """Tell whether the results here reproduce those of a commit: same bytes, within noise, or not.

    A score is within noise if it lies in the 95% interval that the commit has for it. The same
    bytes are promised on one kind of CPU only; with the parameters of `wxb params tiny`, on every
    x86-64 CPU with AVX2, and it is told whether they were met.

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
        raise WxbError(f"nothing made yet that could be compared; {made} makes it")
    compared = [comparison.compare(name, before, after, params) for name in names]
    told = [(r, before.name, after.name, _remedy(r.name, params)) for r in compared]
    beyond = any(result.beyond_noise for result in compared)
    kept = None if other else promise.kept()
    if as_json:
        content = {"before": before.name, "after": after.name, "beyond_noise": beyond}
        listed = [wording.as_json(*each) for each in told]
        content |= {"portable": kept and kept._asdict(), "results": listed}
        print(json.dumps(content, ensure_ascii=False, indent=2))
    elif brief:
        print(*(wording.line(*each) for each in told), sep="\n")
    else:
        console = Console()
        for each in told:
            for part in wording.parts(*each):
                console.print(part)
            print()
    if kept and not as_json:
        print(kept.line)
    if exit_code and beyond:
        raise typer.Exit(1)


def _remedy(name: str, params: Params) -> str:
    """The command that makes a result."""
    verb = "lesson" if name in params.lessons else "report"
    made = f"dvc repro {STAGES.get(name, f'{verb}@{name}')}"
    if name in {**params.studies, **params.lessons, **STAGES}:
        return made
    return f"wxb params {profile} && {made}" if (profile := profiles.bringing(name)) else made
