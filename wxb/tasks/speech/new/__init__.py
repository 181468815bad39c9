"""`wxb new corpus` for a folder of recordings with their transcripts."""

from __future__ import annotations

from pathlib import Path

from wxb.core.errors import WxbError
from wxb.tasks.recognition import Content, Files, Flags, Records, fields_of
from wxb.tasks.speech.record.audio import SUFFIXES


def recognize(files: Files, records: Records, flags: Flags) -> Content | None:
    """The block for a folder with recordings and one or more tables; None for other files.

    If one of several tables has the transcripts, `manifest` lists it first and the others after it.
    Raises WxbError for a table without the folder of its recordings.
    """
    content = records.recognize(files, flags) if _has_audio(files) else None
    if content is None:
        return None
    sentence = content["fields"]["sentence"]
    tables = {file.name: fields_of(Files(file, (file,)).rows) for file in files.members}
    first = [name for name, fields in tables.items() if sentence in fields]
    if len(first) == 1 and len(tables) > 1:
        others = [name for name in tables if name not in first]
        content = {**content, "manifest": [*first, *others]}
    return content


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
