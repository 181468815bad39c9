"""A block of `corpora` for a file or folder, and what the reader makes of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from wxb.cli.new import layout, trial
from wxb.cli.new.trial import Trial
from wxb.core.errors import WxbError, choices
from wxb.core.params.tasks import forms
from wxb.project.params_file import rendered
from wxb.tasks import guessing
from wxb.tasks.guessing import Guess
from wxb.tasks.values import FEWEST_GROUPS, Files


class Found(NamedTuple):
    """The lines of a block, what was guessed besides, and what the reader makes of the records."""

    name: str
    block: str
    notes: list[str]
    trial: Trial


def find_out(path: Path, name: str | None, task: str | None = None) -> Found:
    """The block of a file or folder, of a task or of the one that its records fit.

    Raises WxbError where nothing can be read, no task fits or several do, or the reader rejects all
    records.
    """
    name = name or name_of(path)
    files = layout.found(path)
    chosen, guess = _guess(files, task)
    guess = _with_split(files, guess)
    content = {"task": chosen, "path": _inside(path), **guess.content}
    corpus = forms("Corpus")()[chosen].model_validate(content)
    seen = trial.run(path, corpus)
    if not seen.kept:
        reason, example = next(iter(seen.examples.items()))
        raise WxbError(
            f"{path}: all {seen.rejects.total()} records would be rejected, the first for {reason}"
            f" ({example}); guessed was:\n{rendered({name: content})}"
            "Change the file, or write the block yourself: docs/adding-a-corpus.md"
        )
    if not corpus.split.files and seen.groups < FEWEST_GROUPS:
        guess.notes.append(
            f"few groups: {seen.groups}, of which some are to test and some to validate; bring"
            f" more records, at least {FEWEST_GROUPS} groups"
        )
    why = {f"{name}.{key}": reason for key, reason in guess.why.items()}
    why[name] = "found by `wxb new corpus`: check what is guessed"
    return Found(name, rendered({name: content}, why), guess.notes, seen)


def _guess(files: Files, task: str | None) -> tuple[str, Guess]:
    """The task that most of the files' fields speak for, or the one that is asked for."""
    known = guessing.tasks()
    if task is not None and task not in known:
        raise WxbError(f"--task: found {task!r}{choices(task, known)}")
    tried = {each: guessing.guess(each, files) for each in ([task] if task else known)}
    fitting = {each: guess for each, guess in tried.items() if guess}
    if not fitting:
        expected = "\n".join(f"  {each}: {guessing.records(each).expected}" for each in tried)
        raise WxbError(
            f"{files.members[0]}: found {files.described()};"
            f" expected{' one of' if len(tried) > 1 else ''}\n{expected}\n"
            "Rename the fields, convert the file, or say in params.yaml how it is to be read"
            " (`corpora.<name>`; docs/adding-a-corpus.md)"
        )
    most = max(guess.evidence for guess in fitting.values())
    best, *others = [each for each, guess in fitting.items() if guess.evidence == most]
    if others:
        raise WxbError(
            f"{files.path}: its records fit {' and '.join([best, *others])}; say by --task which is"
            " meant"
        )
    if less := [each for each in fitting if each != best]:
        asked = " or ".join(f"--task {each}" for each in less)
        fitting[best].notes.append(f"read for {best}; {asked} reads it in another way")
    return best, fitting[best]


def name_of(path: Path) -> str:
    """The name of a corpus by its file. Raises WxbError where no letter of it will do."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", path.resolve().name.split(".")[0]).strip("-")
    if not name:
        raise WxbError(f"{path}: found no ASCII letter or digit to name it by; give --name")
    return name


def _inside(path: Path) -> str:
    """A path as params.yaml has it: from the project's root where it is inside."""
    resolved, root = path.resolve(), Path.cwd()
    if resolved.is_relative_to(root):
        return resolved.relative_to(root).as_posix()
    return path.as_posix()


def _with_split(files: Files, guess: Guess) -> Guess:
    """A guess with the splits that names of files tell in the place of shares, if they do."""
    given = layout.split(files.path, files.members) if files.path.is_dir() else None
    if not given:
        return guess
    why = {key: reason for key, reason in guess.why.items() if not key.startswith("split")}
    why["split.files"] = "guessed from the names of the files"
    return guess._replace(content={**guess.content, "split": {"files": given}}, why=why)
