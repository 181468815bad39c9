"""A block of `corpora` for a file or folder, and what the reader makes of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from wxb.cli.new import columns, edits, fields, layout, trial
from wxb.cli.new.layout import Guess
from wxb.cli.new.trial import Trial
from wxb.errors import WxbError
from wxb.tasks.ner.params import Corpus


class Found(NamedTuple):
    """The lines of a block, what was guessed besides, and what the reader makes of the records."""

    name: str
    block: str
    notes: list[str]
    trial: Trial


def find_out(path: Path, name: str | None) -> Found:
    """The block of a file or folder.

    Raises WxbError where nothing can be read, or the reader rejects all records.
    """
    name = name or name_of(path)
    members = layout.found(path)
    records = layout.hold_records(members) and not columns.hold_tags(members)
    guess = (fields if records else columns).guess(members)
    guess = _with_split(path, members, guess)
    content = {"task": "ner", "path": _inside(path), **guess.content}
    corpus = Corpus.model_validate(content)
    seen = trial.run(path, corpus)
    if not seen.kept:
        reason, example = next(iter(seen.examples.items()))
        raise WxbError(
            f"{path}: all {seen.rejects.total()} records would be rejected, the first for {reason}"
            f" ({example}); guessed was:\\n{edits.rendered({name: content}, {})}"
            "Change the file, or write the block yourself: docs/adding-a-corpus.md"
        )
    if not corpus.split.files and len(seen.groups) < fields.FEWEST_GROUPS:
        guess.notes.append(
            f"few groups: {len(seen.groups)}, of which some are to test and some to validate; bring"
            f" more records, at least {fields.FEWEST_GROUPS} groups"
        )
    why = {f"{name}.{key}": reason for key, reason in guess.why.items()}
    why[name] = "found by `wxb new corpus`: check what is guessed"
    return Found(name, edits.rendered({name: content}, why), guess.notes, seen)


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


def _with_split(path: Path, members: list[Path], guess: Guess) -> Guess:
    """A guess with the splits that names of files tell, else with shares."""
    given = layout.split(path, members) if path.is_dir() else None
    if given:
        why = {key: reason for key, reason in guess.why.items() if not key.startswith("split")}
        why["split.files"] = "guessed from the names of the files"
        return guess._replace(content={**guess.content, "split": {"files": given}}, why=why)
    if "split" in guess.content:
        return guess
    split = {"by": None, "test": 0.2, "valid": 0.1}
    why = {"split.by": "by document", "split.test": "share of records, of all"}
    return guess._replace(content={**guess.content, "split": split}, why=guess.why | why)
