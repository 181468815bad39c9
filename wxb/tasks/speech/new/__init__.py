"""`wxb new corpus` for a folder of recordings with their transcripts."""

from __future__ import annotations

from pathlib import Path

from wxb.core.errors import WxbError
from wxb.tasks.recognition import Content, Files, Flags, Records, fields_of
from wxb.tasks.speech.record.audio import SUFFIXES


def recognize(files: Files, records: Records, flags: Flags) -> Content | None:
    """The block for a folder with recordings and one or more tables; None for other files.

    `manifest` is the only table with transcripts of several. Raises WxbError for a table without
    the folder of its recordings.
    """
    content = records.recognize(files, flags) if _has_audio(files) else None
    if content is None:
        return None
    sentence = content["fields"]["sentence"]
    tables = [Files(file, (file,)) for file in files.members]
    first = [table for table in tables if sentence in fields_of(table.rows)]
    if len(first) == 1 and len(tables) > 1 and (content := records.recognize(first[0], flags)):
        content = {**content, "manifest": first[0].path.name}
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
