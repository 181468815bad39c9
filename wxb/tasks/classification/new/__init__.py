"""`wxb new corpus` for texts with a class, also without fields: fastText, a folder per class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wxb.corpora.layout import decode
from wxb.tasks.classification.params import Fields
from wxb.tasks.classification.reading.text_files import CLASS, FASTTEXT
from wxb.tasks.guessing import MAX_CLASSES, Guess, Records
from wxb.tasks.values import SPLITS, Files, split_reasons, split_settings

UNLABELLED = {"unsup", "unlabeled", "unlabelled"}  # names of folders of texts without a class
MOST = 0.95  # share of lines with a label
PER_CLASS = 2  # files of a class, on average at least


def guess(files: Files, records: Records) -> Guess | None:
    """The guess of `records`; without one, that of files without fields."""
    guess = records.guess(files)
    if guess or files.has_fields:
        return guess
    return _fasttext(files) or _folders(files)


def _fasttext(files: Files) -> Guess | None:
    """The block for lines that begin with `__label__`; None of other files."""
    lines = [line for file in files.members for line in decode(file).split("\n") if line.strip()]
    labelled = sum(FASTTEXT.match(line) is not None for line in lines)
    if labelled < MOST * len(lines):
        return None
    fields = Fields(input="text", label=CLASS, language=None, id=None)
    reason = f"guessed: {labelled:,} of {len(lines):,} lines begin with __label__"
    return _guess({"format": "fasttext", "fields": fields.model_dump()}, {"format": reason})


def _folders(files: Files) -> Guess | None:
    """The block for a folder of texts for each class; None of other files."""
    if not files.path.is_dir():
        return None
    counts = Counter(
        file.parent.name for file in files.members if _may_be_class(file.parent, files.path)
    )
    classes = [name for name in counts if name.casefold() not in UNLABELLED]
    is_few = 2 <= len(classes) <= min(MAX_CLASSES, sum(counts.values()) / PER_CLASS)
    if not is_few or 2 * sum(counts.values()) < len(files.members):
        return None
    fields = Fields(input="text", label=None, language=None, id=None)
    content = {
        "format": "files",
        "fields": fields.model_dump(),
        "classes": {name: name if name in classes else None for name in sorted(counts)},
    }
    unlabelled = "; null: unlabelled" if len(classes) < len(counts) else ""
    reasons = {
        "format": "guessed: each file is a text",
        "classes": f"guessed: the names of {len(counts)} folders{unlabelled}",
    }
    return _guess(content, reasons)


def _may_be_class(folder: Path, root: Path) -> bool:
    """Whether a folder is below the root, and its name not that of a published split."""
    return folder != root and not any(
        pattern.fullmatch(folder.name.casefold()) for pattern in SPLITS.values()
    )


def _guess(content: Mapping[str, Any], reasons: Mapping[str, str]) -> Guess:
    split = {"split": split_settings(None)}
    return Guess({**content, **split}, {**reasons, **split_reasons([], None)}, [], evidence=2)
