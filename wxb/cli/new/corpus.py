"""Guess the block of `corpora` for a file or folder, and read the records with it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from wxb.cli.new import layout, trial
from wxb.cli.new.trial import Trial
from wxb.core.errors import WxbError, choices
from wxb.core.params.corpora import Corpus
from wxb.core.params.tasks import corpora
from wxb.corpora.layout import data_files
from wxb.project.params_file import to_yaml
from wxb.tasks import guessing
from wxb.tasks.guessing import Guess
from wxb.tasks.values import MIN_GROUPS, Files


class CorpusGuess(NamedTuple):
    """The YAML of a block, notes for the user, and the records read with it."""

    name: str
    block: str
    notes: list[str]
    trial: Trial


def guess_corpus(path: Path, name: str | None, task: str | None = None) -> CorpusGuess:
    """The guessed block of a file or folder; reads all its records.

    `task`: by default the one that fits the fields best. Raises WxbError if nothing can be read, no
    task or several fit, or the reader rejects all records.
    """
    name = name or corpus_name(path)
    files = layout.find_files(path)
    task, guess = _guess(files, task)
    block = {"task": task, "path": _path_in_params(path)}
    form = corpora()[task]
    guess = _with_published_splits(path, form.model_validate({**block, **guess.content}), guess)
    content = {**block, **guess.content}
    corpus = form.model_validate(content)
    counts = trial.count_records(path, corpus)
    if not counts.kept:
        reason, example = next(iter(counts.examples.items()))
        raise WxbError(
            f"{path}: every record would be rejected, the first of {counts.rejects.total():,} for"
            f" {reason} ({example}). The guessed block:\n{to_yaml({name: content})}"
            "Change the file, or write the block yourself: docs/adding-a-corpus.md"
        )
    if not corpus.split.files and counts.groups < MIN_GROUPS:
        guess.notes.append(
            f"few groups: found {counts.groups} to split into train, valid and test; add records"
            f" of at least {MIN_GROUPS} groups"
        )
    comments = {f"{name}.{key}": reason for key, reason in guess.reasons.items()}
    comments[name] = "added by `wxb new corpus`: check the lines marked `guessed`"
    return CorpusGuess(name, to_yaml({name: content}, comments), guess.notes, counts)


def _guess(files: Files, task: str | None) -> tuple[str, Guess]:
    """The given task, or the one with most evidence in the files, and its guess."""
    known = guessing.tasks()
    if task is not None and task not in known:
        raise WxbError(f"--task: found {task!r}{choices(task, known)}")
    tasks = [task] if task else known
    guesses = {name: guess for name in tasks if (guess := guessing.guess(name, files))}
    if not guesses:
        expected = "\n".join(f"  {name}: {guessing.records(name).expected}" for name in tasks)
        raise WxbError(
            f"{files.members[0]}: found {files.summary()};"
            f" expected{' one of' if len(tasks) > 1 else ''}\n{expected}\n"
            "Rename the fields, convert the file, or write the block `corpora.<name>` in"
            " params.yaml yourself (docs/adding-a-corpus.md)"
        )
    most = max(guess.evidence for guess in guesses.values())
    best, *others = [name for name, guess in guesses.items() if guess.evidence == most]
    if others:
        raise WxbError(
            f"{files.path}: its records fit {' and '.join([best, *others])}; choose with --task"
        )
    if alternatives := " or ".join(f"--task {name}" for name in guesses if name != best):
        guesses[best].notes.append(f"guessed task: {best}; {alternatives} is also possible")
    return best, guesses[best]


def corpus_name(path: Path) -> str:
    """A corpus name from that of a file. Raises WxbError if it has no ASCII letter or digit."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", path.resolve().name.split(".")[0]).strip("-")
    if not name:
        raise WxbError(f"{path}: found no ASCII letter or digit to name it by; give --name")
    return name


def _path_in_params(path: Path) -> str:
    """A path for params.yaml: relative to the project if it is inside."""
    resolved, root = path.resolve(), Path.cwd()
    if resolved.is_relative_to(root):
        return resolved.relative_to(root).as_posix()
    return path.as_posix()


def _with_published_splits(path: Path, corpus: Corpus, guess: Guess) -> Guess:
    """The guess with the splits named by files instead of shares, if there are any."""
    if not path.is_dir():
        return guess
    splits = layout.published_splits(path, data_files(path, corpus))
    named = "guessed from the names of the files"
    if all(splits.values()):
        reasons = {k: reason for k, reason in guess.reasons.items() if not k.startswith("split")}
        content = {**guess.content, "split": {"files": splits}}
        return guess._replace(content=content, reasons={**reasons, "split.files": named})
    if splits["train"] and splits["test"]:  # the others are divided
        further = {"published": {"files": splits["test"]}}
        content = {**guess.content, "split": {**guess.content["split"], "further": further}}
        return guess._replace(content=content, reasons={**guess.reasons, "split.further": named})
    return guess
