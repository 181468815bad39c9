"""`wxb new corpus` for a folder of recordings with their transcripts."""

from __future__ import annotations

from pathlib import Path

from wxb.core.errors import WxbError
from wxb.tasks.guessing import Guess, Records
from wxb.tasks.speech.record.audio import SUFFIXES
from wxb.tasks.values import Files


def guess(files: Files, records: Records) -> Guess | None:
    """The guess of `records` for a folder with recordings and one or more tables, else None.

    If one of several tables has the transcripts, `manifest` lists it first and the others after it.
    Raises WxbError for a table without the folder of its recordings.
    """
    guess = records.guess(files)
    if guess is None or not _has_audio(files):
        return None
    if manifest := _manifest(files, guess.content["fields"]["sentence"]):
        guess.content["manifest"] = manifest
        guess.reasons["manifest"] = "guessed: the first has the transcripts"
    return guess._replace(evidence=guess.evidence + 1)


def _has_audio(files: Files) -> bool:
    """Whether the folder has recordings. Raises WxbError for a table of recordings alone."""
    if files.path.is_dir():
        return any(path.suffix.lower() in SUFFIXES for path in files.path.rglob("*"))
    cells = (value for row in files.rows[:1] for value in row.values() if isinstance(value, str))
    if any(Path(cell).suffix.lower() in SUFFIXES for cell in cells):
        raise WxbError(
            f"{files.path} is a table of recordings; give the folder that contains the table and"
            f" the recordings: wxb new corpus {files.path.parent}"
        )
    return False


def _manifest(files: Files, sentence: str) -> list[str]:
    """The names of the tables, the one of transcripts first; empty for one table, or if unclear."""
    tables = [Files(files.path, [file]) for file in files.members]
    first = [table.names[0] for table in tables if sentence in table.fields]
    others = [name for name in files.names if name not in first]
    return [*first, *others] if len(first) == 1 and others else []
