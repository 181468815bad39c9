"""The command `wxb compare`."""

from __future__ import annotations

from typing import Annotated

import typer

from wxb.core import paths
from wxb.core.errors import WxbError, choices
from wxb.core.params import Params, load
from wxb.project import profiles, revisions
from wxb.project.reproduction import comparison, expected_hashes, wording
from wxb.project.reproduction.results import STAGES, Results
from wxb.reporting.terminal import show, show_json, show_sentence

ALL = "all"


def compare(
    revision: Annotated[str, typer.Argument(help="a commit, branch or tag")] = "HEAD",
    other: Annotated[
        str | None, typer.Argument(help="another one, instead of the working tree")
    ] = None,
    study: Annotated[str, typer.Option(help="a study or lesson, or pretrain; default: all")] = ALL,
    brief: Annotated[
        bool, typer.Option("--brief", help="print only the verdicts, and the page")
    ] = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="as a comment for a pull request: what changed")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="as JSON, for other programs")] = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="exit with 1 if a score is outside its range")
    ] = False,
) -> None:
    """Compare the results in the working tree with those of a commit.

    On the same type of CPU, a rerun must have the same bytes. On another type, its scores must be
    within the variation between trainings, if several seeds are known. Otherwise they are compared
    with their 95% intervals, which only cover the choice of test records. With the parameters of
    `wxb params tiny`, the bytes are the same on every x86-64 CPU with AVX2, except for experiments
    in 4 bits; the last line reports whether they are.

    Example: wxb compare HEAD~1 --study NAME

    Example: wxb compare origin/main HEAD --markdown > comment.md
    """
    params = load()
    before = Results(revisions.commit(revision))
    after = Results(revisions.commit(other) if other else revisions.WorkingTree())
    folders = {**before.folders, **after.folders}
    known = {**params.studies, **params.lessons, **folders}
    if study not in (ALL, *known):
        raise WxbError(f"no study or lesson {study!r}{choices(study, known)}")
    names = [name for name in known if name in folders] if study == ALL else [study]
    if not other and not any(name in after.folders for name in names):
        command = "make run" if study == ALL else _remedy(study, params)
        raise WxbError(f"no results to compare; run `{command}` first")
    results = [comparison.compare(name, before, after, params) for name in names]
    is_outside = any(result.is_outside for result in results)
    hashes = None if other else expected_hashes.check_hashes()
    versions = before.tree.name, after.tree.name
    if as_json:
        content = {
            "before": versions[0],
            "after": versions[1],
            "outside": is_outside,
            "portable": hashes and hashes._asdict(),
            "results": [
                wording.as_json(result, *versions, _remedy(result.name, params))
                for result in results
            ],
        }
        show_json(content)
    elif as_markdown:
        from wxb.project.reproduction.comment import comment

        print(comment(results, *versions), end="")
    else:
        not_run = [r for r in results if wording.summary(r) is wording.Summary.NOT_RUN]
        together = not_run if len(not_run) > 1 else []
        has_page = study in {**params.studies, **params.lessons} and not other
        for result in results:
            if result in together or (brief and has_page and wording.is_new(result)):
                continue
            remedy = _remedy(result.name, params)
            if brief:
                show_sentence(wording.verdict_line(result, *versions, remedy))
            else:
                show(*wording.details(result, *versions, remedy), "")
        if together:
            is_all = len(together) == len(results)
            show_sentence(wording.not_run_line(together, versions[0], is_all=is_all))
        if has_page:
            print(page_line(study, params))
        if hashes:
            show_sentence(hashes.line)
    if exit_code and is_outside:
        raise typer.Exit(1)


def page_line(name: str, params: Params) -> str:
    """The path of the page of a study or lesson, or the command that writes it."""
    path = paths.page(name)
    if path.exists():
        return f"Page: {path.resolve()}"
    return f"Page: {path} does not exist; run `{_remedy(name, params)}`"


def _remedy(name: str, params: Params) -> str:
    """The command that runs a result, with the profile that adds its study if it is absent."""
    verb = "lesson" if name in params.lessons else "report"
    command = f"dvc repro {STAGES.get(name, f'{verb}@{name}')}"
    if name in {**params.studies, **params.lessons, **STAGES}:
        return command
    profile = profiles.profile_adding(name)
    return f"wxb params {profile} && {command}" if profile else command
