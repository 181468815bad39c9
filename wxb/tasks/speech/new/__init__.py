"""`wxb new corpus` for a folder of recordings with their transcripts."""

from __future__ import annotations

from wxb.tasks.recognition import Content, Files, Flags, Records, fields_of
from wxb.tasks.speech.record.audio import SUFFIXES


def recognize(files: Files, records: Records, flags: Flags) -> Content | None:
    """The block for a folder with recordings and one or more tables; None for other files.

    `manifest` is the only table with transcripts of several.
    """
    paths = files.path.rglob("*") if files.path.is_dir() else ()
    has_audio = any(path.suffix.lower() in SUFFIXES for path in paths)
    content = records.recognize(files, flags) if has_audio else None
    if content is None or len(files.members) == 1:
        return content
    sentence = content["fields"]["sentence"]
    tables = [Files(file, (file,)) for file in files.members]
    first = [table for table in tables if sentence in fields_of(table.rows)]
    if len(first) == 1 and (content := records.recognize(first[0], flags)):
        content = {**content, "manifest": first[0].path.name}
    return content
