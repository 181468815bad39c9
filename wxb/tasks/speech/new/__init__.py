"""How a folder of recordings with their transcripts is recognized."""

from __future__ import annotations

from pathlib import Path

from wxb.core.errors import WxbError
from wxb.tasks.guessing import Guess, Records
from wxb.tasks.speech.record.audio.reading import SUFFIXES
from wxb.tasks.values import Files


def guess(files: Files, records: Records) -> Guess | None:
    """Tables of transcripts, with recordings below their folder; a further table may add fields."""
    guess = records.guess(files)
    if guess is None or not _holds_audio(files):
        return None
    if manifest := _manifest(files, guess.content["fields"]["sentence"]):
        guess.content["manifest"] = manifest
        guess.why["manifest"] = "guessed: the first says what was said"
    return guess._replace(evidence=guess.evidence + 1)


def _holds_audio(files: Files) -> bool:
    """Whether recordings lie below the tables. Raises WxbError where the path is a table alone."""
    if files.path.is_dir():
        return any(path.suffix.lower() in SUFFIXES for path in files.path.rglob("*"))
    cells = (value for row in files.rows[:1] for value in row.values() if isinstance(value, str))
    if any(Path(cell).suffix.lower() in SUFFIXES for cell in cells):
        raise WxbError(
            f"{files.path}: found a table that names recordings; expected the folder that both lie"
            f" in: wxb new corpus {files.path.parent}"
        )
    return False


def _manifest(files: Files, sentence: str) -> list[str]:
    """The tables by name, that of the sentences first; empty unless others only add fields."""
    first = [file.name for file in files.members if sentence in files.fields_of(file)]
    others = [name for name in files.names if name not in first]
    return [*first, *others] if len(first) == 1 and others else []
